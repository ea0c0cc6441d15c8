-- Stamps of triggers are those of the rows, else the present time.
CREATE TRIGGER IF NOT EXISTS changes_of_event_insert AFTER INSERT ON availability_event
WHEN NOT NEW.of_ended_seats
BEGIN
    INSERT INTO apps_config_change
        (app_id, type, action, at, object_id, log_id, history_id, "transaction")
    SELECT NEW.app_id, 'event', 'created', NEW.updated_at, NEW.id, NULL, NULL, 0;
END;
CREATE TRIGGER IF NOT EXISTS changes_of_event_update AFTER UPDATE ON availability_event
WHEN NOT NEW.of_ended_seats AND (
    OLD.calendar_id IS NOT NEW.calendar_id
    OR OLD.resource_id IS NOT NEW.resource_id
    OR OLD.start IS NOT NEW.start
    OR OLD."end" IS NOT NEW."end"
    OR OLD.all_day IS NOT NEW.all_day
    OR OLD.what IS NOT NEW.what
    OR OLD."where" IS NOT NEW."where"
    OR OLD.description IS NOT NEW.description
    OR OLD.participants IS NOT NEW.participants
    OR OLD.rsvp IS NOT NEW.rsvp
    OR OLD.invite IS NOT NEW.invite
    OR OLD.busy IS NOT NEW.busy
    OR OLD.provider_id IS NOT NEW.provider_id
    OR OLD.conference_provider IS NOT NEW.conference_provider
    OR OLD.conference_url IS NOT NEW.conference_url
)
BEGIN
    INSERT INTO apps_config_change
        (app_id, type, action, at, object_id, log_id, history_id, "transaction")
    SELECT NEW.app_id, 'event', 'updated', NEW.updated_at, NEW.id, NULL, NULL, 0;
END;
CREATE TRIGGER IF NOT EXISTS changes_of_event_delete AFTER DELETE ON availability_event
WHEN NOT OLD.of_ended_seats
BEGIN
    INSERT INTO apps_config_change
        (app_id, type, action, at, object_id, log_id, history_id, "transaction")
    SELECT OLD.app_id, 'event', 'deleted', strftime('%Y-%m-%d %H:%M:%f', 'now'), OLD.id, NULL, NULL, 0;
END;

CREATE TRIGGER IF NOT EXISTS changes_of_calendar_insert AFTER INSERT ON availability_calendar
BEGIN
    INSERT INTO apps_config_change
        (app_id, type, action, at, object_id, log_id, history_id, "transaction")
    SELECT NEW.app_id, 'calendar', 'created', NEW.updated_at, NEW.id, NULL, NULL, 0;
END;
CREATE TRIGGER IF NOT EXISTS changes_of_calendar_update AFTER UPDATE ON availability_calendar
WHEN (
    OLD.name IS NOT NEW.name
    OR OLD.description IS NOT NEW.description
    OR OLD.backgroundcolor IS NOT NEW.backgroundcolor
    OR OLD.foregroundcolor IS NOT NEW.foregroundcolor
    OR OLD.provider IS NOT NEW.provider
    OR OLD.provider_id IS NOT NEW.provider_id
    OR OLD.provider_access IS NOT NEW.provider_access
    OR OLD.provider_primary IS NOT NEW.provider_primary
    OR OLD.deleted_at IS NOT NEW.deleted_at
)
BEGIN
    INSERT INTO apps_config_change
        (app_id, type, action, at, object_id, log_id, history_id, "transaction")
    SELECT NEW.app_id, 'calendar', CASE WHEN NEW.deleted_at IS NULL THEN 'updated' ELSE 'deleted' END, NEW.updated_at, NEW.id, NULL, NULL, 0;
END;
CREATE TRIGGER IF NOT EXISTS changes_of_calendar_delete AFTER DELETE ON availability_calendar
WHEN OLD.deleted_at IS NULL
BEGIN
    INSERT INTO apps_config_change
        (app_id, type, action, at, object_id, log_id, history_id, "transaction")
    SELECT OLD.app_id, 'calendar', 'deleted', strftime('%Y-%m-%d %H:%M:%f', 'now'), OLD.id, NULL, NULL, 0;
END;

CREATE TRIGGER IF NOT EXISTS changes_of_resource AFTER INSERT ON availability_historicalresource
BEGIN
    INSERT INTO apps_config_change
        (app_id, type, action, at, object_id, log_id, history_id, "transaction")
    SELECT NEW.app_id, 'resource', CASE WHEN NEW.history_type = '+' THEN 'created'
            WHEN NEW.history_type = '-' OR NEW.deleted_at IS NOT NULL THEN 'deleted' ELSE 'updated' END, NEW.history_date, NEW.id, NULL, NEW.history_id, 0;
END;
CREATE TRIGGER IF NOT EXISTS changes_of_schedule AFTER INSERT ON availability_historicalschedule
BEGIN
    INSERT INTO apps_config_change
        (app_id, type, action, at, object_id, log_id, history_id, "transaction")
    SELECT NEW.app_id, 'schedule', CASE WHEN NEW.history_type = '+' THEN 'created'
            WHEN NEW.history_type = '-' THEN 'deleted' ELSE 'updated' END, NEW.history_date, NEW.id, NULL, NEW.history_id, 0;
END;
CREATE TRIGGER IF NOT EXISTS changes_of_project AFTER INSERT ON availability_historicalproject
BEGIN
    INSERT INTO apps_config_change
        (app_id, type, action, at, object_id, log_id, history_id, "transaction")
    SELECT NEW.app_id, 'project', CASE WHEN NEW.history_type = '+' THEN 'created'
            WHEN NEW.history_type = '-' OR NEW.deleted_at IS NOT NULL THEN 'deleted' ELSE 'updated' END, NEW.history_date, NEW.id, NULL, NEW.history_id, 0;
END;

-- One change until it is numbered, however many resources a statement changes.
CREATE TRIGGER IF NOT EXISTS changes_of_project_resource_insert AFTER INSERT ON availability_projectresource
BEGIN
    INSERT INTO apps_config_change
        (app_id, type, action, at, object_id, log_id, history_id, "transaction")
    SELECT project.app_id, 'project', 'updated', strftime('%Y-%m-%d %H:%M:%f', 'now'), project.id, NULL, NULL, 0
    FROM availability_project AS project
    WHERE project.id = NEW.project_id AND project.deleted_at IS NULL AND NOT EXISTS (
        SELECT 1 FROM apps_config_change AS pending
        WHERE pending.app_id = project.app_id AND pending.number IS NULL
            AND pending.object_id = project.id AND pending.action = 'updated'
    );
END;
CREATE TRIGGER IF NOT EXISTS changes_of_project_resource_delete AFTER DELETE ON availability_projectresource
BEGIN
    INSERT INTO apps_config_change
        (app_id, type, action, at, object_id, log_id, history_id, "transaction")
    SELECT project.app_id, 'project', 'updated', strftime('%Y-%m-%d %H:%M:%f', 'now'), project.id, NULL, NULL, 0
    FROM availability_project AS project
    WHERE project.id = OLD.project_id AND project.deleted_at IS NULL AND NOT EXISTS (
        SELECT 1 FROM apps_config_change AS pending
        WHERE pending.app_id = project.app_id AND pending.number IS NULL
            AND pending.object_id = project.id AND pending.action = 'updated'
    );
END;
