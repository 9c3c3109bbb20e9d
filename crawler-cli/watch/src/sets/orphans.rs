//! Sets whose source is not in the configuration any more.

use crate::config::{ScheduleConfig, SetConfig, Source};
use crate::work::Tools;
use store::{SetInfo, StoreHandle as _};

/// Tells an operator which sets were read from a source that the configuration does not have any more. Their URLs are
/// watched on: a line that was lost from the configuration must not remove what it named.
pub(crate) fn note_orphans(sets: &[SetConfig], schedules: &[ScheduleConfig], tools: &Tools) {
    let known = match tools.store().read(|store| store.sets()) {
        Ok(known) => known,
        Err(error) => return tools.note("set", &format!("the sets cannot be read: {error}")),
    };
    let has_source = |name: &str| {
        let is_it = |set: &SetConfig| set.name == name && set.source != Source::Submitted;
        let fills = |schedule: &ScheduleConfig| schedule.job.fills() == Some(name);
        sets.iter().any(is_it) || schedules.iter().any(fills)
    };
    let was_read = |set: &&SetInfo| set.read_at.is_some() && set.members > 0;
    for set in known.iter().filter(was_read) {
        if !has_source(&set.name) {
            let (name, members) = (&set.name, set.members);
            let text = format!(
                "the configuration has no source for the set {name:?} any more: its URLs ({members}) are still watched; \
                 'watch remove --set NAME --all' ends that"
            );
            tools.note("set", &text);
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::config::Loaded;
    use crate::core::Settings;
    use crate::work::Http;
    use store::sqlite::Sqlite;
    use store::{NewUrl, NoticeId, Origin, Writer, WriterSettings};

    #[test]
    fn sets_without_their_source_are_named() {
        let engine = Sqlite::temporary().expect("a store");
        let store = Writer::start(engine, WriterSettings::default()).expect("a thread");
        let filled = store.call(|store| {
            let now = Timestamp::UNIX_EPOCH;
            let url = [NewUrl::parse("http://a.example/").expect("a URL")];
            for name in ["kept", "found", "lost", "empty"] {
                let reading = store.begin_reading(name, now)?;
                if name != "empty" {
                    store.read_urls(&reading, &url, now)?;
                }
                store.end_reading(reading, "mark", now, 1.0)?;
            }
            store.submit("by hand", Origin::Hand, &url, now)
        });
        filled.expect("stored");
        let text = "[[set]]\nname = 'kept'\nurls = 'a.txt'\n\
             [[schedule]]\nname = 's'\ncron = '@daily'\n\
             job = { sitemap = 'http://a.example/s.xml', into_set = 'found' }\n";
        let loaded = Loaded::parse(text, std::path::Path::new("w.toml")).expect("valid");
        let tools = Tools::new(store.clone(), Http::from(&Settings::default()));
        note_orphans(&loaded.config.sets, &loaded.config.schedules, &tools);
        let notices = store.read(|store| store.notices(NoticeId::START, 10));
        let notices = notices.expect("read");
        let texts: Vec<&str> = notices.iter().map(|(_, notice)| &*notice.text).collect();
        assert_eq!(texts.len(), 1, "{texts:?}");
        assert!(texts[0].contains("the set \"lost\""), "{texts:?}");
    }
}
