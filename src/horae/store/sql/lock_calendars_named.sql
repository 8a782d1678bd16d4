-- Like calendars_named, but locked: no other transaction can change or delete them until this one ends.
{include(calendars_named)}
{share_lock(calendar)}
