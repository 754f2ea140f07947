-- The whole event, as it was posted.
CREATE TABLE business_events (
    id           text PRIMARY KEY CHECK (char_length(id) BETWEEN 1 AND 64),
    event_name   text NOT NULL,
    event_type   text NOT NULL,
    created_date timestamptz NOT NULL,
    saved_date   timestamptz NOT NULL,
    event_data   jsonb NOT NULL
);

-- What Debezium reads and filters judge: the header, with the service fields copied into it.
CREATE TABLE event_headers (
    id           text PRIMARY KEY REFERENCES business_events (id) ON DELETE CASCADE,
    event_name   text NOT NULL,
    event_type   text NOT NULL,
    created_date timestamptz NOT NULL,
    saved_date   timestamptz NOT NULL,
    header_data  jsonb NOT NULL
);

-- A delete must say what was deleted, and an update must repeat what it left as it was.
ALTER TABLE event_headers REPLICA IDENTITY FULL;

-- It outlives a table that was dropped.
DROP PUBLICATION IF EXISTS headgate_events;
CREATE PUBLICATION headgate_events FOR TABLE event_headers;

-- One table for each type of entity; it holds the newest state that an event told.
CREATE TABLE cars (
    entity_id   text PRIMARY KEY,
    event_id    text NOT NULL REFERENCES business_events (id) ON DELETE CASCADE,
    created_at  timestamptz NOT NULL,
    updated_at  timestamptz NOT NULL,
    entity_data jsonb NOT NULL
);
CREATE TABLE loans           (LIKE cars INCLUDING ALL);
CREATE TABLE loan_payments   (LIKE cars INCLUDING ALL);
CREATE TABLE service_records (LIKE cars INCLUDING ALL);
CREATE TABLE parts_used      (LIKE cars INCLUDING ALL);
CREATE TABLE service_details (LIKE cars INCLUDING ALL);

ALTER TABLE loans           ADD FOREIGN KEY (event_id) REFERENCES business_events (id) ON DELETE CASCADE;
ALTER TABLE loan_payments   ADD FOREIGN KEY (event_id) REFERENCES business_events (id) ON DELETE CASCADE;
ALTER TABLE service_records ADD FOREIGN KEY (event_id) REFERENCES business_events (id) ON DELETE CASCADE;
ALTER TABLE parts_used      ADD FOREIGN KEY (event_id) REFERENCES business_events (id) ON DELETE CASCADE;
ALTER TABLE service_details ADD FOREIGN KEY (event_id) REFERENCES business_events (id) ON DELETE CASCADE;
