use super::*;

#[test]
fn rows_are_read_until_the_last() {
    let db = Connection::from(rusqlite::Connection::open_in_memory().expect("memory"));
    db.execute_batch("CREATE TABLE some (number INTEGER PRIMARY KEY, text TEXT)")
        .expect("made");
    let store = upsert("some", &["number"], &["text"]);
    let mut store = db.prepare_cached(&store).expect("valid");
    for (number, text) in [(1, "a"), (2, "b"), (1, "c")] {
        let stored = store.execute(params![number, text]).expect("written");
        assert_eq!(stored, 1);
    }
    let mut query = db
        .prepare_cached("SELECT text FROM some WHERE number >= ?1 ORDER BY number")
        .expect("valid");
    let texts: Vec<String> = query.query_all([1], |row| row.get(0)).expect("read");
    assert_eq!(texts, ["c", "b"]);
    assert!(query.exists([2]).expect("read"));
    let none = query.query_row([3], |row| row.get::<String>(0));
    assert_eq!(none.optional().expect("no error"), None);
    let wrong = query.query_row([1], |row| row.get::<i64>(0));
    assert!(matches!(wrong, Err(Error::Value(0, _))));
}
