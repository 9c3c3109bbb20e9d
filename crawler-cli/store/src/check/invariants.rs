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
        "each key leads to a URL, or is that of one that was forgotten",
        "SELECT 'key of URL ' || k.url FROM url_key k \
         WHERE k.url > 0 AND NOT EXISTS (SELECT 1 FROM url u WHERE u.url = k.url)",
    ),
    (
        "each change of state is that of a URL",
        "SELECT 'change ' || e.cursor FROM event e \
         WHERE NOT EXISTS (SELECT 1 FROM url u WHERE u.url = e.url)",
    ),
    (
        "each change of state begins in the state in which the change before ended",
        "SELECT 'change ' || e.cursor || ' of URL ' || e.url FROM event e LEFT JOIN event p ON p.cursor = e.prev \
         WHERE e.prev > 0 AND (p.cursor IS NULL OR p.url <> e.url OR p.cursor >= e.cursor OR p.to_state <> e.from_state)",
    ),
    (
        "each change of state is the last one of its URL, or comes before another one",
        "SELECT 'change ' || e.cursor || ' of URL ' || e.url FROM event e LEFT JOIN url u ON u.url = e.url \
         WHERE u.event <> e.cursor AND e.cursor NOT IN (SELECT prev FROM event)",
    ),
    (
        "the last change of state of each URL is there",
        "SELECT 'URL ' || u.url FROM url u WHERE u.event > 0 \
         AND NOT EXISTS (SELECT 1 FROM event e WHERE e.cursor = u.event AND e.url = u.url)",
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
         LEFT JOIN (SELECT queue, count(*) FILTER (WHERE state = 0) AS waiting, count(*) FILTER (WHERE state = 1) AS started FROM job GROUP BY queue) j \
         ON j.queue = q.queue \
         WHERE q.waiting <> coalesce(j.waiting, 0) OR q.started <> coalesce(j.started, 0)",
    ),
    (
        "no job or dead letter has a number that is still to come",
        "SELECT n.name || ' ' || t.last FROM number n JOIN ( \
         SELECT 'job' AS name, max(job) AS last FROM job \
         UNION ALL SELECT 'letter', max(letter) FROM dead_letter) t ON t.name = n.name WHERE t.last >= n.next",
    ),
    (
        "each dead letter is that of a URL, a text or a job",
        "SELECT 'dead letter ' || d.letter FROM dead_letter d WHERE CASE d.kind \
         WHEN 0 THEN NOT EXISTS (SELECT 1 FROM url u WHERE u.url = d.url) \
         WHEN 1 THEN d.text IS NULL \
         WHEN 2 THEN d.job IS NULL OR d.payload IS NULL \
             OR NOT EXISTS (SELECT 1 FROM job_queue q WHERE q.queue = d.queue) ELSE 1 = 1 END",
    ),
    (
        "each dead letter has a first time that is not after its last, and a last exchange of at most 4 KiB",
        "SELECT 'dead letter ' || letter FROM dead_letter \
         WHERE first_at > last_at OR octet_length(last) > 4096",
    ),
    (
        "there are as many dead letters of each reason as are counted",
        "SELECT 'reason ' || reason FROM ( \
         SELECT reason, count(*) AS letters FROM dead_letter WHERE replayed_at IS NULL GROUP BY reason \
         EXCEPT SELECT reason, letters FROM dead_letter_count) AS more \
         UNION SELECT 'reason ' || reason FROM ( \
         SELECT reason, letters FROM dead_letter_count \
         EXCEPT SELECT reason, count(*) FROM dead_letter WHERE replayed_at IS NULL GROUP BY reason) AS less",
    ),
    (
        "each firing is that of a schedule, and none is after the last one",
        "SELECT 'firing at ' || f.scheduled_at FROM firing f LEFT JOIN schedule s ON s.schedule = f.schedule \
         WHERE s.schedule IS NULL OR s.last_fired IS NULL OR f.scheduled_at > s.last_fired",
    ),
    (
        "each member of a set is a URL, and each set has as many members as it counts",
        "SELECT 'member ' || m.url || ' of set ' || m.set_number FROM member m \
         WHERE NOT EXISTS (SELECT 1 FROM url u WHERE u.url = m.url) \
         OR NOT EXISTS (SELECT 1 FROM url_set s WHERE s.set_number = m.set_number) \
         UNION ALL SELECT 'set ' || s.name FROM url_set s \
         WHERE s.members <> (SELECT count(*) FROM member m WHERE m.set_number = s.set_number)",
    ),
    (
        "each set has as many members in each state as it counts",
        "SELECT 'set ' || s.name FROM url_set s WHERE s.members <> (SELECT coalesce(sum(count), 0) FROM set_count c WHERE c.set_number = s.set_number) \
         UNION ALL SELECT 'set ' || coalesce(c.set_number, t.set_number) || ' state ' || coalesce(c.state, t.state) FROM ( \
         SELECT m.set_number, u.trouble AS state, count(*) AS n FROM member m JOIN url u ON u.url = m.url \
         WHERE u.trouble > 1 GROUP BY m.set_number, u.trouble) t \
         FULL JOIN (SELECT * FROM set_count WHERE state > 1) c ON c.set_number = t.set_number AND c.state = t.state \
         WHERE coalesce(c.count, 0) <> coalesce(t.n, 0)",
    ),
    (
        "each URL is in as many sets as it counts",
        "SELECT 'URL ' || u.url FROM url u \
         LEFT JOIN (SELECT url, count(*) AS sets FROM member GROUP BY url) m ON m.url = u.url \
         WHERE u.sets <> coalesce(m.sets, 0)",
    ),
    (
        "each URL in a set has exactly one due row, if it does not wait for an operator, and no other URL has one",
        "SELECT 'URL ' || u.url FROM url u \
         LEFT JOIN (SELECT url, count(*) AS rows FROM due GROUP BY url) d ON d.url = u.url \
         WHERE coalesce(d.rows, 0) > CASE WHEN u.sets > 0 THEN 1 ELSE 0 END OR (u.sets > 0 AND d.rows IS NULL \
         AND NOT EXISTS (SELECT 1 FROM dead_letter l WHERE l.kind = 0 AND l.url = u.url))",
    ),
    (
        "each due row is that of a URL of its host",
        "SELECT 'due row of URL ' || d.url FROM due d \
         WHERE NOT EXISTS (SELECT 1 FROM url u WHERE u.url = d.url AND u.host = d.host)",
    ),
    (
        "each host says when its first URL is due",
        "SELECT 'host ' || h.host FROM host h WHERE \
         h.next_due IS DISTINCT FROM (SELECT min(due_at) FROM due d WHERE d.host = h.host AND d.lane IN (0, 1, 2)) \
         OR h.next_doubt IS DISTINCT FROM (SELECT min(due_at) FROM due d WHERE d.host = h.host AND d.lane = 3)",
    ),
    (
        "each host has as many URLs in sets, and as many held, as it counts",
        "SELECT 'host ' || h.host FROM host h \
         LEFT JOIN (SELECT host, count(*) AS urls FROM url WHERE sets > 0 GROUP BY host) u ON u.host = h.host \
         LEFT JOIN (SELECT host, count(*) AS held FROM due WHERE lane = 4 GROUP BY host) d ON d.host = h.host \
         WHERE h.urls <> coalesce(u.urls, 0) OR h.held <> coalesce(d.held, 0)",
    ),
    (
        "each hold is that of a host, and each held URL is that of a host with a hold",
        "SELECT 'hold of host ' || o.host FROM hold o \
         WHERE NOT EXISTS (SELECT 1 FROM host h WHERE h.host = o.host) \
         UNION ALL SELECT DISTINCT 'host ' || d.host FROM due d WHERE d.lane = 4 \
         AND NOT EXISTS (SELECT 1 FROM hold o WHERE o.host = d.host) \
         AND NOT EXISTS (SELECT 1 FROM stop s WHERE s.host = 0 AND s.ended IS NULL)",
    ),
    (
        "there are as many due rows in each lane, members, kept URLs and hosts as are counted",
        "SELECT 'kind ' || coalesce(c.kind, t.kind) || ' code ' || coalesce(c.code, t.code) FROM ( \
         SELECT 1 AS kind, lane AS code, count(*) AS n FROM due GROUP BY lane \
         UNION ALL SELECT 2, 0, count(*) FROM member \
         UNION ALL SELECT 2, 1, count(*) FROM url WHERE left_at IS NOT NULL \
         UNION ALL SELECT 2, 2, count(*) FROM host WHERE urls > 0) t \
         FULL JOIN (SELECT * FROM watch_count WHERE kind > 0) c ON c.kind = t.kind AND c.code = t.code \
         WHERE coalesce(c.count, 0) <> coalesce(t.n, 0)",
    ),
    (
        "a URL that left all sets is in none, and says since when",
        "SELECT 'URL ' || url FROM url WHERE (left_at IS NOT NULL AND sets > 0) \
         OR (watched IS NOT NULL AND sets = 0 AND left_at IS NULL)",
    ),
];
