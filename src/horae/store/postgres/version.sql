SELECT version FROM horae
