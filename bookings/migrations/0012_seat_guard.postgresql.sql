-- No seat beyond those of its group and place: the lock of the group's row makes its seats serial.
CREATE FUNCTION bookings_check_seats() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    most integer;
    most_there integer;
    taken integer;
    taken_there integer;
BEGIN
    SELECT max_seats, (places ->> NEW.place)::integer INTO most, most_there
    FROM bookings_booking WHERE id = NEW.owner_booking_id FOR NO KEY UPDATE;
    SELECT COALESCE(SUM(COALESCE(quantity, 1)), 0),
        COALESCE(SUM(COALESCE(quantity, 1)) FILTER (WHERE place = NEW.place), 0)
    INTO taken, taken_there
    FROM bookings_booking
    WHERE owner_booking_id = NEW.owner_booking_id AND id <> NEW.id AND deleted_at IS NULL
        AND state IN ('tentative', 'confirmed', 'paid', 'completed');
    IF taken + COALESCE(NEW.quantity, 1) > most
        OR taken_there + COALESCE(NEW.quantity, 1) > most_there
    THEN
        RAISE EXCEPTION 'group_full: the group has no free seat' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER group_full_on_insert BEFORE INSERT ON bookings_booking
    FOR EACH ROW WHEN (
        NEW.owner_booking_id IS NOT NULL
        AND NEW.state IN ('tentative', 'confirmed', 'paid', 'completed')
    ) EXECUTE FUNCTION bookings_check_seats();
CREATE TRIGGER group_full_on_update
    BEFORE UPDATE OF state, quantity, place, owner_booking_id, deleted_at ON bookings_booking
    FOR EACH ROW WHEN (
        NEW.owner_booking_id IS NOT NULL AND NEW.deleted_at IS NULL
        AND NEW.state IN ('tentative', 'confirmed', 'paid', 'completed')
        AND (
            OLD.state NOT IN ('tentative', 'confirmed', 'paid', 'completed')
            OR COALESCE(NEW.quantity, 1) > COALESCE(OLD.quantity, 1)
            OR NEW.place IS DISTINCT FROM OLD.place
            OR NEW.owner_booking_id IS DISTINCT FROM OLD.owner_booking_id
            OR OLD.deleted_at IS NOT NULL
        )
    ) EXECUTE FUNCTION bookings_check_seats();

CREATE FUNCTION bookings_check_fewer_seats() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF (
        SELECT SUM(COALESCE(quantity, 1)) FROM bookings_booking
        WHERE owner_booking_id = NEW.id AND deleted_at IS NULL
            AND state IN ('tentative', 'confirmed', 'paid', 'completed')
    ) > NEW.max_seats OR EXISTS (
        SELECT 1 FROM bookings_booking
        WHERE owner_booking_id = NEW.id AND deleted_at IS NULL
            AND state IN ('tentative', 'confirmed', 'paid', 'completed')
        GROUP BY place HAVING SUM(COALESCE(quantity, 1)) > (NEW.places ->> place)::integer
    ) THEN
        RAISE EXCEPTION 'group_full: more seats are taken' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER group_full_on_fewer_seats
    BEFORE UPDATE OF max_seats, places ON bookings_booking
    FOR EACH ROW WHEN (
        NEW.max_seats < OLD.max_seats OR NEW.places IS DISTINCT FROM OLD.places
    ) EXECUTE FUNCTION bookings_check_fewer_seats();
