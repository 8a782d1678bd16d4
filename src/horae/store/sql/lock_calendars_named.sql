-- The same, and no other transaction can change or remove them until the end.
{include(calendars_named)}
{share_lock}
