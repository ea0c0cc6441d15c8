-- No double booking ----------------------------------------------------------------------------
-- Events with unit 0 that block their resource.
ALTER TABLE availability_event ADD CONSTRAINT slot_taken EXCLUDE USING gist (
    resource_id WITH =, tstzrange(start, "end", '[)') WITH &&
) WHERE (exclusive);
-- The other units of a resource that takes several bookings at once. Deferrable: units of several
-- events are assigned anew in one statement.
ALTER TABLE availability_event ADD CONSTRAINT slot_taken_unit EXCLUDE USING gist (
    resource_id WITH =, unit WITH =, tstzrange(start, "end", '[)') WITH &&
) WHERE (busy AND unit > 0) DEFERRABLE INITIALLY IMMEDIATE;

CREATE FUNCTION availability_event_unit() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF NEW.unit < 0 OR NEW.unit >= (
        SELECT capacity FROM availability_resource WHERE id = NEW.resource_id
    ) THEN
        RAISE EXCEPTION 'slot_taken: the resource has no unit %', NEW.unit
            USING ERRCODE = 'exclusion_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER slot_taken_capacity
    BEFORE INSERT OR UPDATE OF unit, resource_id, busy ON availability_event
    FOR EACH ROW WHEN (NEW.busy AND NEW.unit <> 0) EXECUTE FUNCTION availability_event_unit();

-- The app of a row's parent --------------------------------------------------------------------
CREATE TRIGGER fixed_app BEFORE UPDATE OF app_id ON availability_resource
    FOR EACH ROW WHEN (OLD.app_id <> NEW.app_id) EXECUTE FUNCTION refuse_new_app();

CREATE FUNCTION availability_calendar_app() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF NEW.app_id IS DISTINCT FROM (SELECT app_id FROM availability_resource WHERE id = NEW.resource_id)
        OR TG_OP = 'UPDATE' AND NEW.app_id <> OLD.app_id
    THEN
        RAISE EXCEPTION 'availability_calendar: another app than that of availability_resource'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER app_on_insert BEFORE INSERT ON availability_calendar
    FOR EACH ROW EXECUTE FUNCTION availability_calendar_app();
CREATE TRIGGER app_on_update BEFORE UPDATE ON availability_calendar
    FOR EACH ROW WHEN ((OLD.app_id, OLD.resource_id) IS DISTINCT FROM (NEW.app_id, NEW.resource_id))
    EXECUTE FUNCTION availability_calendar_app();

CREATE FUNCTION availability_event_app() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF NEW.app_id IS DISTINCT FROM (SELECT app_id FROM availability_calendar WHERE id = NEW.calendar_id)
        OR TG_OP = 'UPDATE' AND NEW.app_id <> OLD.app_id
    THEN
        RAISE EXCEPTION 'availability_event: another app than that of availability_calendar'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER app_on_insert BEFORE INSERT ON availability_event
    FOR EACH ROW EXECUTE FUNCTION availability_event_app();
CREATE TRIGGER app_on_update BEFORE UPDATE ON availability_event
    FOR EACH ROW WHEN ((OLD.app_id, OLD.calendar_id) IS DISTINCT FROM (NEW.app_id, NEW.calendar_id))
    EXECUTE FUNCTION availability_event_app();

-- Indexes and storage --------------------------------------------------------------------------
CREATE INDEX event_range ON availability_event USING gist (tstzrange(start, "end"));

-- Tables that grow, and whose rows are chosen by app. PostgreSQL takes an app that is not in the
-- statistics for one without rows, and then reads all its rows where another index finds one.
ALTER TABLE availability_event SET (
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 1000
);

-- Few rows that change all the time: the table stays small only if it is vacuumed without pauses.
ALTER TABLE availability_hold SET (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);
