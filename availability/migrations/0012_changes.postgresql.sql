CREATE OR REPLACE TRIGGER changes_insert AFTER INSERT ON availability_event
    FOR EACH ROW WHEN (NOT NEW.of_ended_seats) EXECUTE FUNCTION change_of_row('event');
CREATE OR REPLACE TRIGGER changes_update AFTER UPDATE ON availability_event
    FOR EACH ROW WHEN (NOT NEW.of_ended_seats AND (
        OLD.calendar_id, OLD.resource_id, OLD.start, OLD."end", OLD.all_day, OLD.what, OLD."where",
        OLD.description, OLD.participants, OLD.rsvp, OLD.invite, OLD.busy, OLD.provider_id,
        OLD.conference_provider, OLD.conference_url
    ) IS DISTINCT FROM (
        NEW.calendar_id, NEW.resource_id, NEW.start, NEW."end", NEW.all_day, NEW.what, NEW."where",
        NEW.description, NEW.participants, NEW.rsvp, NEW.invite, NEW.busy, NEW.provider_id,
        NEW.conference_provider, NEW.conference_url
    )) EXECUTE FUNCTION change_of_row('event');
CREATE OR REPLACE TRIGGER changes_delete AFTER DELETE ON availability_event
    FOR EACH ROW WHEN (NOT OLD.of_ended_seats) EXECUTE FUNCTION change_of_row('event');

CREATE OR REPLACE TRIGGER changes_insert AFTER INSERT ON availability_calendar
    FOR EACH ROW EXECUTE FUNCTION change_of_row('calendar');
CREATE OR REPLACE TRIGGER changes_update AFTER UPDATE ON availability_calendar
    FOR EACH ROW WHEN (NEW.deleted_at IS NULL AND (
        OLD.name, OLD.description, OLD.backgroundcolor, OLD.foregroundcolor, OLD.provider,
        OLD.provider_id, OLD.provider_access, OLD.provider_primary, OLD.deleted_at
    ) IS DISTINCT FROM (
        NEW.name, NEW.description, NEW.backgroundcolor, NEW.foregroundcolor, NEW.provider,
        NEW.provider_id, NEW.provider_access, NEW.provider_primary, NEW.deleted_at
    )) EXECUTE FUNCTION change_of_row('calendar');
CREATE OR REPLACE TRIGGER changes_hide AFTER UPDATE OF deleted_at ON availability_calendar
    FOR EACH ROW WHEN (OLD.deleted_at IS NULL AND NEW.deleted_at IS NOT NULL)
    EXECUTE FUNCTION change_of_row('calendar', 'deleted');
CREATE OR REPLACE TRIGGER changes_delete AFTER DELETE ON availability_calendar
    FOR EACH ROW WHEN (OLD.deleted_at IS NULL) EXECUTE FUNCTION change_of_row('calendar');

CREATE OR REPLACE TRIGGER changes AFTER INSERT ON availability_historicalresource
    FOR EACH ROW EXECUTE FUNCTION change_of_history('resource');

CREATE OR REPLACE TRIGGER changes AFTER INSERT ON availability_historicalschedule
    FOR EACH ROW EXECUTE FUNCTION change_of_history('schedule');

CREATE OR REPLACE TRIGGER changes AFTER INSERT ON availability_historicalproject
    FOR EACH ROW EXECUTE FUNCTION change_of_history('project');

CREATE OR REPLACE TRIGGER changes_insert AFTER INSERT ON availability_projectresource
    REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION change_of_project_resources();
CREATE OR REPLACE TRIGGER changes_delete AFTER DELETE ON availability_projectresource
    REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION change_of_project_resources();
