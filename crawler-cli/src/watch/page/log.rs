//! What operators and guards have done: the notices.

use maud::{Markup, html};

use super::asked::Asked;
use super::frame::framed;
use super::pieces::{ROWS, date, pager, section, table};
use super::{read, trouble};
use crate::store::{NoticeId, WatchStore as _};
use crate::watch::admin::answer::Answer;
use crate::watch::hands::words::safe;

pub(super) async fn page(asked: Asked) -> Answer {
    let query = &asked.query;
    let before = query.number("before").map_or(NoticeId::END, NoticeId);
    let found = read(&asked.site, None, move |reader, _| {
        reader.store().notices_before(before, ROWS + 1)
    });
    let (around, mut notices) = match found.await {
        Ok(found) => found,
        Err(error) => return trouble(&error),
    };
    let has_more = notices.len() > ROWS;
    notices.truncate(ROWS);
    let rows: Vec<Vec<Markup>> = notices
        .iter()
        .map(|(_, notice)| {
            vec![
                date(around.now, notice.at),
                html! { (safe(notice.who.as_deref().unwrap_or("the service"))) },
                html! { (safe(&notice.kind)) },
                html! { (safe(&notice.text)) },
            ]
        })
        .collect();
    let next = notices
        .last()
        .filter(|_| has_more)
        .map(|(id, _)| id.0.to_string());
    let body = section(
        "Notices",
        &html! {
            (table("Notices, newest first", &["When", "Who", "What", "Text"], &rows, "There are no notices."))
            (pager(query, "/log", "before", next.as_deref()))
        },
    );
    framed(&asked, &around, "/log", "Log", &body)
}
