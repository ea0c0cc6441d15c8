-- No seat beyond those of its group and place.
CREATE TRIGGER group_full_on_insert BEFORE INSERT ON bookings_booking
WHEN NEW.owner_booking_id IS NOT NULL
    AND NEW.state IN ('tentative', 'confirmed', 'paid', 'completed')
    AND (
    SELECT TOTAL(COALESCE(quantity, 1)) + COALESCE(NEW.quantity, 1) > (
            SELECT max_seats FROM bookings_booking WHERE id = NEW.owner_booking_id
        )
        OR TOTAL(COALESCE(quantity, 1)) FILTER (WHERE place = NEW.place)
            + COALESCE(NEW.quantity, 1) > (
            SELECT own.value FROM bookings_booking AS owner, json_each(owner.places) AS own
            WHERE owner.id = NEW.owner_booking_id AND own.key = NEW.place
        )
    FROM bookings_booking
    WHERE owner_booking_id = NEW.owner_booking_id AND id <> NEW.id AND deleted_at IS NULL
        AND state IN ('tentative', 'confirmed', 'paid', 'completed')
)
BEGIN
    SELECT RAISE(ABORT, 'group_full');
END;
CREATE TRIGGER group_full_on_update
BEFORE UPDATE OF state, quantity, place, owner_booking_id, deleted_at ON bookings_booking
WHEN NEW.owner_booking_id IS NOT NULL AND NEW.deleted_at IS NULL
    AND NEW.state IN ('tentative', 'confirmed', 'paid', 'completed')
    AND (
        OLD.state NOT IN ('tentative', 'confirmed', 'paid', 'completed')
        OR COALESCE(NEW.quantity, 1) > COALESCE(OLD.quantity, 1)
        OR NEW.place IS NOT OLD.place
        OR NEW.owner_booking_id IS NOT OLD.owner_booking_id
        OR OLD.deleted_at IS NOT NULL
    )
    AND (
    SELECT TOTAL(COALESCE(quantity, 1)) + COALESCE(NEW.quantity, 1) > (
            SELECT max_seats FROM bookings_booking WHERE id = NEW.owner_booking_id
        )
        OR TOTAL(COALESCE(quantity, 1)) FILTER (WHERE place = NEW.place)
            + COALESCE(NEW.quantity, 1) > (
            SELECT own.value FROM bookings_booking AS owner, json_each(owner.places) AS own
            WHERE owner.id = NEW.owner_booking_id AND own.key = NEW.place
        )
    FROM bookings_booking
    WHERE owner_booking_id = NEW.owner_booking_id AND id <> NEW.id AND deleted_at IS NULL
        AND state IN ('tentative', 'confirmed', 'paid', 'completed')
)
BEGIN
    SELECT RAISE(ABORT, 'group_full');
END;
CREATE TRIGGER group_full_on_fewer_seats BEFORE UPDATE OF max_seats, places ON bookings_booking
WHEN (NEW.max_seats < OLD.max_seats OR NEW.places IS NOT OLD.places) AND (
    (
        SELECT TOTAL(COALESCE(quantity, 1)) FROM bookings_booking
        WHERE owner_booking_id = NEW.id AND deleted_at IS NULL
            AND state IN ('tentative', 'confirmed', 'paid', 'completed')
    ) > NEW.max_seats OR EXISTS (
        SELECT 1 FROM bookings_booking AS seat, json_each(NEW.places) AS own
        WHERE seat.owner_booking_id = NEW.id AND seat.deleted_at IS NULL
            AND seat.state IN ('tentative', 'confirmed', 'paid', 'completed')
            AND own.key = seat.place
        GROUP BY seat.place HAVING SUM(COALESCE(seat.quantity, 1)) > own.value
    )
)
BEGIN
    SELECT RAISE(ABORT, 'group_full');
END;
