-- No double booking ----------------------------------------------------------------------------
CREATE INDEX event_exclusive ON availability_event (resource_id, "end") WHERE exclusive;
CREATE TRIGGER slot_taken_on_insert BEFORE INSERT ON availability_event
WHEN NEW.exclusive AND EXISTS (
    SELECT 1 FROM availability_event AS other
    WHERE other.resource_id = NEW.resource_id AND other.exclusive AND other.id <> NEW.id
        AND other.start < NEW."end" AND other."end" > NEW.start
)
BEGIN
    SELECT RAISE(ABORT, 'slot_taken');
END;
CREATE TRIGGER slot_taken_on_update
BEFORE UPDATE OF start, "end", resource_id, exclusive ON availability_event
WHEN NEW.exclusive AND EXISTS (
    SELECT 1 FROM availability_event AS other
    WHERE other.resource_id = NEW.resource_id AND other.exclusive AND other.id <> NEW.id
        AND other.start < NEW."end" AND other."end" > NEW.start
)
BEGIN
    SELECT RAISE(ABORT, 'slot_taken');
END;
CREATE TRIGGER slot_taken_unit_on_insert BEFORE INSERT ON availability_event
WHEN NEW.busy AND NEW.unit > 0 AND EXISTS (
    SELECT 1 FROM availability_event AS other
    WHERE other.resource_id = NEW.resource_id AND other.busy AND other.unit = NEW.unit
        AND other.id <> NEW.id AND other.start < NEW."end" AND other."end" > NEW.start
)
BEGIN
    SELECT RAISE(ABORT, 'slot_taken_unit');
END;
CREATE TRIGGER slot_taken_unit_on_update
BEFORE UPDATE OF start, "end", resource_id, unit, busy ON availability_event
WHEN NEW.busy AND NEW.unit > 0 AND EXISTS (
    SELECT 1 FROM availability_event AS other
    WHERE other.resource_id = NEW.resource_id AND other.busy AND other.unit = NEW.unit
        AND other.id <> NEW.id AND other.start < NEW."end" AND other."end" > NEW.start
)
BEGIN
    SELECT RAISE(ABORT, 'slot_taken_unit');
END;
CREATE TRIGGER slot_taken_capacity_on_insert BEFORE INSERT ON availability_event
WHEN NEW.busy AND NEW.unit <> 0 AND (NEW.unit < 0 OR NEW.unit >= (
    SELECT capacity FROM availability_resource WHERE id = NEW.resource_id
))
BEGIN
    SELECT RAISE(ABORT, 'slot_taken: the resource has no such unit');
END;
CREATE TRIGGER slot_taken_capacity_on_update
BEFORE UPDATE OF unit, resource_id, busy ON availability_event
WHEN NEW.busy AND NEW.unit <> 0 AND (NEW.unit < 0 OR NEW.unit >= (
    SELECT capacity FROM availability_resource WHERE id = NEW.resource_id
))
BEGIN
    SELECT RAISE(ABORT, 'slot_taken: the resource has no such unit');
END;

-- The app of a row's parent --------------------------------------------------------------------
CREATE TRIGGER availability_resource_fixed_app BEFORE UPDATE OF app_id ON availability_resource
WHEN OLD.app_id <> NEW.app_id
BEGIN
    SELECT RAISE(ABORT, 'availability_resource: a row stays in its app');
END;

CREATE TRIGGER availability_calendar_app_on_insert BEFORE INSERT ON availability_calendar
WHEN NEW.app_id IS NOT (SELECT app_id FROM availability_resource WHERE id = NEW.resource_id)
BEGIN
    SELECT RAISE(ABORT, 'availability_calendar: another app than that of availability_resource');
END;
CREATE TRIGGER availability_calendar_app_on_update BEFORE UPDATE OF app_id, resource_id ON availability_calendar
WHEN NEW.app_id <> OLD.app_id
    OR NEW.app_id IS NOT (SELECT app_id FROM availability_resource WHERE id = NEW.resource_id)
BEGIN
    SELECT RAISE(ABORT, 'availability_calendar: another app than that of availability_resource');
END;

CREATE TRIGGER availability_event_app_on_insert BEFORE INSERT ON availability_event
WHEN NEW.app_id IS NOT (SELECT app_id FROM availability_calendar WHERE id = NEW.calendar_id)
BEGIN
    SELECT RAISE(ABORT, 'availability_event: another app than that of availability_calendar');
END;
CREATE TRIGGER availability_event_app_on_update BEFORE UPDATE OF app_id, calendar_id ON availability_event
WHEN NEW.app_id <> OLD.app_id
    OR NEW.app_id IS NOT (SELECT app_id FROM availability_calendar WHERE id = NEW.calendar_id)
BEGIN
    SELECT RAISE(ABORT, 'availability_event: another app than that of availability_calendar');
END;
