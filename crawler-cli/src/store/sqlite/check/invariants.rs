//! What has to hold, in words, with queries that name what breaks it.

/// What has to hold, with a query whose rows are texts: what breaks it.
pub(super) const QUERIES: &[(&str, &str)] = &[
    (
        "each URL has a host, or is local",
        "SELECT 'URL ' || u.url FROM url u \
         WHERE u.host IS NOT NULL AND NOT EXISTS (SELECT 1 FROM host h WHERE h.host = u.host)",
    ),
    (
        "each answer is that of a URL",
        "SELECT 'answer of URL ' || a.url FROM answer a \
         WHERE NOT EXISTS (SELECT 1 FROM url u WHERE u.url = a.url)",
    ),
    (
        "each URL that a run has to ask is in the queue of its host",
        "SELECT 'entry ' || q.entry FROM queue q \
         WHERE NOT EXISTS (SELECT 1 FROM url u WHERE u.url = q.url AND u.host = q.host)",
    ),
    (
        "each key leads to a URL",
        "SELECT 'key of URL ' || k.url FROM url_key k \
         WHERE NOT EXISTS (SELECT 1 FROM url u WHERE u.url = k.url)",
    ),
    (
        "each change of state is that of a URL",
        "SELECT 'change ' || e.cursor FROM event e \
         WHERE NOT EXISTS (SELECT 1 FROM url u WHERE u.url = e.url)",
    ),
    (
        "each change of state begins in the state in which the change before ended",
        "SELECT 'change ' || cursor || ' of URL ' || url FROM (SELECT cursor, url, from_state, \
         lag(to_state) OVER (PARTITION BY url ORDER BY cursor) AS before FROM event) \
         WHERE before IS NOT NULL AND before <> from_state",
    ),
    (
        "no change of state has a cursor that is still to come",
        "SELECT 'change ' || e.cursor FROM event e, store s WHERE e.cursor >= s.next_event",
    ),
    (
        "each job is in a queue, and waits, is started, or is over with a key",
        "SELECT 'job ' || j.job FROM job j WHERE j.state NOT IN (0, 1, 2) OR (j.state = 2 AND j.key IS NULL) \
         OR NOT EXISTS (SELECT 1 FROM job_queue q WHERE q.queue = j.queue)",
    ),
    (
        "no job has more attempts than it may have",
        "SELECT 'job ' || job FROM job WHERE spared < 0 OR spared > attempt \
         OR (state = 0 AND attempt - spared >= max_attempts) OR attempt - spared > max_attempts",
    ),
    (
        "each queue has as many jobs as it counts",
        "SELECT 'queue ' || q.name FROM job_queue q \
         LEFT JOIN (SELECT queue, sum(state = 0) AS waiting, sum(state = 1) AS started FROM job GROUP BY queue) j \
         ON j.queue = q.queue \
         WHERE q.waiting <> coalesce(j.waiting, 0) OR q.started <> coalesce(j.started, 0)",
    ),
    (
        "no job, dead letter or message has a number that is still to come",
        "SELECT n.name || ' ' || t.last FROM number n JOIN ( \
         SELECT 'job' AS name, max(job) AS last FROM job \
         UNION ALL SELECT 'letter', max(letter) FROM dead_letter \
         UNION ALL SELECT 'message', max(message) FROM outbox) t ON t.name = n.name WHERE t.last >= n.next",
    ),
    (
        "each dead letter is that of a URL, a text, a job or a message",
        "SELECT 'dead letter ' || d.letter FROM dead_letter d WHERE CASE d.kind \
         WHEN 0 THEN NOT EXISTS (SELECT 1 FROM url u WHERE u.url = d.url) \
         WHEN 1 THEN d.text IS NULL \
         WHEN 2 THEN d.job IS NULL OR d.payload IS NULL \
             OR NOT EXISTS (SELECT 1 FROM job_queue q WHERE q.queue = d.queue) \
         WHEN 3 THEN d.text IS NULL OR d.topic IS NULL OR d.payload IS NULL ELSE 1 END",
    ),
    (
        "each dead letter has a first time that is not after its last, and a last exchange of at most 4 KiB",
        "SELECT 'dead letter ' || letter FROM dead_letter \
         WHERE first_at > last_at OR length(CAST(last AS BLOB)) > 4096",
    ),
    (
        "there are as many dead letters of each reason as are counted",
        "SELECT 'reason ' || reason FROM ( \
         SELECT reason, count(*) AS letters FROM dead_letter WHERE replayed_at IS NULL GROUP BY reason \
         EXCEPT SELECT reason, letters FROM dead_letter_count) \
         UNION SELECT 'reason ' || reason FROM ( \
         SELECT reason, letters FROM dead_letter_count \
         EXCEPT SELECT reason, count(*) FROM dead_letter WHERE replayed_at IS NULL GROUP BY reason)",
    ),
    (
        "each firing is that of a schedule, and none is after the last one",
        "SELECT 'firing at ' || f.scheduled_at FROM firing f LEFT JOIN schedule s ON s.schedule = f.schedule \
         WHERE s.schedule IS NULL OR s.last_fired IS NULL OR f.scheduled_at > s.last_fired",
    ),
];
