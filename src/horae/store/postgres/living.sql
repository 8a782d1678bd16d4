-- Which of some nodes live.
SELECT epoch FROM node WHERE epoch = ANY ($1::bigint[]) AND deadline > clock_timestamp()
