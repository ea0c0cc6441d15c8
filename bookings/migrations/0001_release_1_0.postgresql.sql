-- The history of a booking is append-only; erasure may empty or shorten its texts ---------------
CREATE FUNCTION log_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the history of a booking is append-only'
        USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER log_append_only BEFORE UPDATE ON bookings_statechange
    FOR EACH ROW WHEN (
        (OLD.id, OLD.booking_id, OLD.from_state, OLD.to_state, OLD.action, OLD.source, OLD.created_at)
            IS DISTINCT FROM
        (NEW.id, NEW.booking_id, NEW.from_state, NEW.to_state, NEW.action, NEW.source, NEW.created_at)
        OR length(NEW.actor) > length(OLD.actor) OR length(NEW.message) > length(OLD.message)
    ) EXECUTE FUNCTION log_append_only();

-- The app of a row's parent --------------------------------------------------------------------
CREATE TRIGGER fixed_app BEFORE UPDATE OF app_id ON bookings_booking
    FOR EACH ROW WHEN (OLD.app_id <> NEW.app_id) EXECUTE FUNCTION refuse_new_app();

CREATE FUNCTION bookings_customer_app() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF NEW.app_id IS DISTINCT FROM (SELECT app_id FROM bookings_booking WHERE id = NEW.booking_id)
        OR TG_OP = 'UPDATE' AND NEW.app_id <> OLD.app_id
    THEN
        RAISE EXCEPTION 'bookings_customer: another app than that of bookings_booking'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER app_on_insert BEFORE INSERT ON bookings_customer
    FOR EACH ROW EXECUTE FUNCTION bookings_customer_app();
CREATE TRIGGER app_on_update BEFORE UPDATE ON bookings_customer
    FOR EACH ROW WHEN ((OLD.app_id, OLD.booking_id) IS DISTINCT FROM (NEW.app_id, NEW.booking_id))
    EXECUTE FUNCTION bookings_customer_app();

CREATE FUNCTION bookings_statechange_app() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF NEW.app_id IS DISTINCT FROM (SELECT app_id FROM bookings_booking WHERE id = NEW.booking_id)
        OR TG_OP = 'UPDATE' AND NEW.app_id <> OLD.app_id
    THEN
        RAISE EXCEPTION 'bookings_statechange: another app than that of bookings_booking'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER app_on_insert BEFORE INSERT ON bookings_statechange
    FOR EACH ROW EXECUTE FUNCTION bookings_statechange_app();
CREATE TRIGGER app_on_update BEFORE UPDATE ON bookings_statechange
    FOR EACH ROW WHEN ((OLD.app_id, OLD.booking_id) IS DISTINCT FROM (NEW.app_id, NEW.booking_id))
    EXECUTE FUNCTION bookings_statechange_app();

-- AppCustomer: one row per address -------------------------------------------------------------
-- Count an address anew. The first statement locks its row, so that of two transactions the second
-- one counts what the first one has committed.
CREATE FUNCTION recount_app_customer(_app uuid, _address text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE found record;
BEGIN
    INSERT INTO bookings_appcustomer AS person
        (app_id, address, bookings, first_booking_at, last_booking_at)
    VALUES (_app, _address, 0, now(), now())
    ON CONFLICT (app_id, address) DO UPDATE SET bookings = person.bookings;
    SELECT count(DISTINCT booking.id), min(booking.created_at), max(booking.created_at) INTO found
    FROM bookings_customer AS customer
    JOIN bookings_booking AS booking ON booking.id = customer.booking_id
    WHERE customer.address = _address AND booking.app_id = _app AND booking.deleted_at IS NULL;
    IF found.count = 0 THEN
        DELETE FROM bookings_appcustomer WHERE app_id = _app AND address = _address;
    ELSE
        UPDATE bookings_appcustomer
        SET bookings = found.count, first_booking_at = found.min, last_booking_at = found.max
        WHERE app_id = _app AND address = _address;
    END IF;
END $$;

-- A customer is written: one more booking if the booking names the address for the first time, else
-- count anew.
CREATE FUNCTION count_app_customer() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE booking record;
BEGIN
    IF TG_OP <> 'INSERT' AND OLD.address <> '' THEN
        PERFORM recount_app_customer(app_id, OLD.address)
        FROM bookings_booking WHERE id = OLD.booking_id;
    END IF;
    IF TG_OP = 'DELETE' OR NEW.address = '' THEN
        RETURN NULL;
    END IF;
    SELECT id, app_id, created_at, deleted_at INTO booking
    FROM bookings_booking WHERE id = NEW.booking_id;
    IF TG_OP = 'UPDATE' OR EXISTS (
        SELECT FROM bookings_customer AS other WHERE other.booking_id = NEW.booking_id
        AND other.id <> NEW.id AND other.address = NEW.address
    ) THEN
        PERFORM recount_app_customer(booking.app_id, NEW.address);
    ELSIF booking.deleted_at IS NULL THEN
        INSERT INTO bookings_appcustomer AS person
            (app_id, address, bookings, first_booking_at, last_booking_at)
        VALUES (booking.app_id, NEW.address, 1, booking.created_at, booking.created_at)
        ON CONFLICT (app_id, address) DO UPDATE SET bookings = person.bookings + 1,
            first_booking_at = least(person.first_booking_at, excluded.first_booking_at),
            last_booking_at = greatest(person.last_booking_at, excluded.last_booking_at);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER app_customer_insert AFTER INSERT ON bookings_customer
    FOR EACH ROW WHEN (NEW.address <> '') EXECUTE FUNCTION count_app_customer();
CREATE TRIGGER app_customer_update AFTER UPDATE OF booking_id, address ON bookings_customer
    FOR EACH ROW
    WHEN ((OLD.booking_id, OLD.address) IS DISTINCT FROM (NEW.booking_id, NEW.address))
    EXECUTE FUNCTION count_app_customer();
CREATE TRIGGER app_customer_delete AFTER DELETE ON bookings_customer
    FOR EACH ROW WHEN (OLD.address <> '') EXECUTE FUNCTION count_app_customer();

-- A booking is deleted or restored, or gets another time of creation: count all its addresses anew.
CREATE FUNCTION recount_app_customers() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE _address text;
BEGIN
    FOR _address IN
        SELECT DISTINCT address FROM bookings_customer
        WHERE booking_id = NEW.id AND address <> '' ORDER BY 1
    LOOP
        PERFORM recount_app_customer(NEW.app_id, _address);
    END LOOP;
    RETURN NULL;
END $$;
CREATE TRIGGER app_customer_booking AFTER UPDATE OF created_at, deleted_at ON bookings_booking
    FOR EACH ROW WHEN (
        (OLD.created_at, OLD.deleted_at IS NULL)
        IS DISTINCT FROM (NEW.created_at, NEW.deleted_at IS NULL)
    ) EXECUTE FUNCTION recount_app_customers();

-- ListingTally: the numbers of bookings by state, and of customers ------------------------------
CREATE FUNCTION tally_bookings() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM tally_move(
        coalesce(NEW.app_id, OLD.app_id), 'bookings',
        CASE WHEN OLD.deleted_at IS NULL THEN OLD.state END,
        CASE WHEN NEW.deleted_at IS NULL THEN NEW.state END
    );
    RETURN NULL;
END $$;
CREATE TRIGGER tally_bookings_insert AFTER INSERT ON bookings_booking
    FOR EACH ROW EXECUTE FUNCTION tally_bookings();
CREATE TRIGGER tally_bookings_update AFTER UPDATE OF state, deleted_at ON bookings_booking
    FOR EACH ROW
    WHEN ((OLD.state, OLD.deleted_at IS NULL) IS DISTINCT FROM (NEW.state, NEW.deleted_at IS NULL))
    EXECUTE FUNCTION tally_bookings();
CREATE TRIGGER tally_bookings_delete AFTER DELETE ON bookings_booking
    FOR EACH ROW EXECUTE FUNCTION tally_bookings();

CREATE FUNCTION tally_customers() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM tally_move(
        coalesce(NEW.app_id, OLD.app_id), 'customers',
        CASE WHEN TG_OP = 'DELETE' THEN '' END, CASE WHEN TG_OP = 'INSERT' THEN '' END
    );
    RETURN NULL;
END $$;
CREATE TRIGGER tally_customers AFTER INSERT OR DELETE ON bookings_appcustomer
    FOR EACH ROW EXECUTE FUNCTION tally_customers();

-- Indexes and storage --------------------------------------------------------------------------
CREATE INDEX booking_meta ON bookings_booking USING gin (meta jsonb_path_ops);
CREATE INDEX customer_search ON bookings_customer USING gin (
    upper(name) gin_trgm_ops, upper(email) gin_trgm_ops, upper(phone) gin_trgm_ops
);
CREATE INDEX app_customer_search ON bookings_appcustomer USING gin (upper(address) gin_trgm_ops);

-- Tables that grow, and whose rows are chosen by app. PostgreSQL takes an app that is not in the
-- statistics for one without rows, and then reads all its rows where another index finds one.
ALTER TABLE bookings_booking SET (
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 1000
);
ALTER TABLE bookings_customer SET (
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 1000
);
ALTER TABLE bookings_appcustomer SET (
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 1000
);
ALTER TABLE bookings_statechange SET (
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 1000
);
