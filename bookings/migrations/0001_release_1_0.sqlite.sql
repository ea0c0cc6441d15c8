-- The history of a booking is append-only; erasure may empty or shorten its texts ---------------
CREATE TRIGGER log_append_only BEFORE UPDATE ON bookings_statechange
WHEN (OLD.id, OLD.booking_id, OLD.from_state, OLD.to_state, OLD.action, OLD.source, OLD.created_at)
        IS NOT
    (NEW.id, NEW.booking_id, NEW.from_state, NEW.to_state, NEW.action, NEW.source, NEW.created_at)
    OR length(NEW.actor) > length(OLD.actor) OR length(NEW.message) > length(OLD.message)
BEGIN
    SELECT RAISE(ABORT, 'the history of a booking is append-only');
END;

-- The app of a row's parent --------------------------------------------------------------------
CREATE TRIGGER bookings_booking_fixed_app BEFORE UPDATE OF app_id ON bookings_booking
WHEN OLD.app_id <> NEW.app_id
BEGIN
    SELECT RAISE(ABORT, 'bookings_booking: a row stays in its app');
END;

CREATE TRIGGER bookings_customer_app_on_insert BEFORE INSERT ON bookings_customer
WHEN NEW.app_id IS NOT (SELECT app_id FROM bookings_booking WHERE id = NEW.booking_id)
BEGIN
    SELECT RAISE(ABORT, 'bookings_customer: another app than that of bookings_booking');
END;
CREATE TRIGGER bookings_customer_app_on_update BEFORE UPDATE OF app_id, booking_id ON bookings_customer
WHEN NEW.app_id <> OLD.app_id
    OR NEW.app_id IS NOT (SELECT app_id FROM bookings_booking WHERE id = NEW.booking_id)
BEGIN
    SELECT RAISE(ABORT, 'bookings_customer: another app than that of bookings_booking');
END;

CREATE TRIGGER bookings_statechange_app_on_insert BEFORE INSERT ON bookings_statechange
WHEN NEW.app_id IS NOT (SELECT app_id FROM bookings_booking WHERE id = NEW.booking_id)
BEGIN
    SELECT RAISE(ABORT, 'bookings_statechange: another app than that of bookings_booking');
END;
CREATE TRIGGER bookings_statechange_app_on_update BEFORE UPDATE OF app_id, booking_id ON bookings_statechange
WHEN NEW.app_id <> OLD.app_id
    OR NEW.app_id IS NOT (SELECT app_id FROM bookings_booking WHERE id = NEW.booking_id)
BEGIN
    SELECT RAISE(ABORT, 'bookings_statechange: another app than that of bookings_booking');
END;

-- AppCustomer: one row per address -------------------------------------------------------------
CREATE TRIGGER app_customer_insert AFTER INSERT ON bookings_customer
WHEN NEW.address <> ''
BEGIN
    INSERT INTO bookings_appcustomer
        (app_id, address, bookings, first_booking_at, last_booking_at)
    SELECT booking.app_id, NEW.address, 1, booking.created_at, booking.created_at
    FROM bookings_booking AS booking
    WHERE booking.id = NEW.booking_id AND booking.deleted_at IS NULL AND NOT EXISTS (
        SELECT 1 FROM bookings_customer AS other WHERE other.booking_id = NEW.booking_id
            AND other.id <> NEW.id AND other.address = NEW.address
    )
    ON CONFLICT (app_id, address) DO UPDATE SET bookings = bookings + 1,
        first_booking_at = min(first_booking_at, excluded.first_booking_at),
        last_booking_at = max(last_booking_at, excluded.last_booking_at);
END;
CREATE TRIGGER app_customer_update AFTER UPDATE OF booking_id, address ON bookings_customer
BEGIN
    DELETE FROM bookings_appcustomer
    WHERE app_id = (SELECT app_id FROM bookings_booking WHERE id = OLD.booking_id)
        AND address IN (OLD.address);
    INSERT INTO bookings_appcustomer
        (app_id, address, bookings, first_booking_at, last_booking_at)
    SELECT booking.app_id, customer.address, count(DISTINCT booking.id),
        min(booking.created_at), max(booking.created_at)
    FROM bookings_customer AS customer
    JOIN bookings_booking AS booking ON booking.id = customer.booking_id
    WHERE customer.address IN (OLD.address) AND customer.address <> ''
        AND booking.deleted_at IS NULL
        AND booking.app_id = (SELECT app_id FROM bookings_booking WHERE id = OLD.booking_id)
    GROUP BY 1, 2;
    DELETE FROM bookings_appcustomer
    WHERE app_id = (SELECT app_id FROM bookings_booking WHERE id = NEW.booking_id)
        AND address IN (NEW.address);
    INSERT INTO bookings_appcustomer
        (app_id, address, bookings, first_booking_at, last_booking_at)
    SELECT booking.app_id, customer.address, count(DISTINCT booking.id),
        min(booking.created_at), max(booking.created_at)
    FROM bookings_customer AS customer
    JOIN bookings_booking AS booking ON booking.id = customer.booking_id
    WHERE customer.address IN (NEW.address) AND customer.address <> ''
        AND booking.deleted_at IS NULL
        AND booking.app_id = (SELECT app_id FROM bookings_booking WHERE id = NEW.booking_id)
    GROUP BY 1, 2;
END;
CREATE TRIGGER app_customer_delete AFTER DELETE ON bookings_customer
BEGIN
    DELETE FROM bookings_appcustomer
    WHERE app_id = (SELECT app_id FROM bookings_booking WHERE id = OLD.booking_id)
        AND address IN (OLD.address);
    INSERT INTO bookings_appcustomer
        (app_id, address, bookings, first_booking_at, last_booking_at)
    SELECT booking.app_id, customer.address, count(DISTINCT booking.id),
        min(booking.created_at), max(booking.created_at)
    FROM bookings_customer AS customer
    JOIN bookings_booking AS booking ON booking.id = customer.booking_id
    WHERE customer.address IN (OLD.address) AND customer.address <> ''
        AND booking.deleted_at IS NULL
        AND booking.app_id = (SELECT app_id FROM bookings_booking WHERE id = OLD.booking_id)
    GROUP BY 1, 2;
END;
CREATE TRIGGER app_customer_booking AFTER UPDATE OF created_at, deleted_at ON bookings_booking
BEGIN
    DELETE FROM bookings_appcustomer
    WHERE app_id = (SELECT app_id FROM bookings_booking WHERE id = NEW.id)
        AND address IN (SELECT address FROM bookings_customer WHERE booking_id = NEW.id);
    INSERT INTO bookings_appcustomer
        (app_id, address, bookings, first_booking_at, last_booking_at)
    SELECT booking.app_id, customer.address, count(DISTINCT booking.id),
        min(booking.created_at), max(booking.created_at)
    FROM bookings_customer AS customer
    JOIN bookings_booking AS booking ON booking.id = customer.booking_id
    WHERE customer.address IN (SELECT address FROM bookings_customer WHERE booking_id = NEW.id) AND customer.address <> ''
        AND booking.deleted_at IS NULL
        AND booking.app_id = (SELECT app_id FROM bookings_booking WHERE id = NEW.id)
    GROUP BY 1, 2;
END;

-- ListingTally: the numbers of bookings by state, and of customers. SQLite has one writer: slot 0
-- is enough -------------------------------------------------------------------------------------
CREATE TRIGGER tally_bookings_insert AFTER INSERT ON bookings_booking
BEGIN
    INSERT INTO apps_config_listingtally (app_id, listing, part, slot, count)
    SELECT NEW.app_id, 'bookings', NEW.state, 0, 1 WHERE NEW.deleted_at IS NULL
    ON CONFLICT (app_id, listing, part, slot)
        DO UPDATE SET count = apps_config_listingtally.count + excluded.count;
END;
CREATE TRIGGER tally_bookings_delete AFTER DELETE ON bookings_booking
BEGIN
    INSERT INTO apps_config_listingtally (app_id, listing, part, slot, count)
    SELECT OLD.app_id, 'bookings', OLD.state, 0, -1 WHERE OLD.deleted_at IS NULL
    ON CONFLICT (app_id, listing, part, slot)
        DO UPDATE SET count = apps_config_listingtally.count + excluded.count;
END;
CREATE TRIGGER tally_bookings_update AFTER UPDATE OF state, deleted_at ON bookings_booking
BEGIN
    INSERT INTO apps_config_listingtally (app_id, listing, part, slot, count)
    SELECT OLD.app_id, 'bookings', OLD.state, 0, -1 WHERE OLD.deleted_at IS NULL
    ON CONFLICT (app_id, listing, part, slot)
        DO UPDATE SET count = apps_config_listingtally.count + excluded.count;
    INSERT INTO apps_config_listingtally (app_id, listing, part, slot, count)
    SELECT NEW.app_id, 'bookings', NEW.state, 0, 1 WHERE NEW.deleted_at IS NULL
    ON CONFLICT (app_id, listing, part, slot)
        DO UPDATE SET count = apps_config_listingtally.count + excluded.count;
END;
CREATE TRIGGER tally_customers_insert AFTER INSERT ON bookings_appcustomer
BEGIN
    INSERT INTO apps_config_listingtally (app_id, listing, part, slot, count)
    SELECT NEW.app_id, 'customers', '', 0, 1 WHERE TRUE
    ON CONFLICT (app_id, listing, part, slot)
        DO UPDATE SET count = apps_config_listingtally.count + excluded.count;
END;
CREATE TRIGGER tally_customers_delete AFTER DELETE ON bookings_appcustomer
BEGIN
    INSERT INTO apps_config_listingtally (app_id, listing, part, slot, count)
    SELECT OLD.app_id, 'customers', '', 0, -1 WHERE TRUE
    ON CONFLICT (app_id, listing, part, slot)
        DO UPDATE SET count = apps_config_listingtally.count + excluded.count;
END;
