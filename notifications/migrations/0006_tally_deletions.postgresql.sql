-- ListingTally: the purge deletes a thousand deliveries in a statement. Counted one by one, they
-- would leave a thousand versions of a few tallies.
CREATE FUNCTION tally_deleted_deliveries() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO apps_config_listingtally AS tally (app_id, listing, part, slot, count)
    SELECT app_id, 'deliveries', type || ':' || replace(coalesce(webhook_id::text, ''), '-', ''),
        pg_backend_pid() % 32, -count(*)
    FROM deleted
    GROUP BY 1, 3 ORDER BY 1, 3
    ON CONFLICT (app_id, listing, part, slot) DO UPDATE SET count = tally.count + excluded.count;
    RETURN NULL;
END $$;

DROP TRIGGER tally_deliveries ON notifications_delivery;
CREATE TRIGGER tally_deliveries AFTER INSERT ON notifications_delivery
    FOR EACH ROW EXECUTE FUNCTION tally_deliveries();
CREATE TRIGGER tally_deleted_deliveries AFTER DELETE ON notifications_delivery
    REFERENCING OLD TABLE AS deleted
    FOR EACH STATEMENT EXECUTE FUNCTION tally_deleted_deliveries();
