//! What a change of the configuration needs.

use crate::config::Loaded;

/// The keys that have changed and need a restart. If there are any, nothing is applied: a configuration holds as a whole.
pub(super) fn needs_restart(old: &Loaded, new: &Loaded) -> Vec<String> {
    let changed = new.changes(old).into_iter();
    changed
        .filter(|key| AT_START.contains(&key.as_str()))
        .collect()
}

/// What the store, the client and the listener are made with, once.
const AT_START: &[&str] = &[
    "store.url",
    "store.lease",
    "store.password_file",
    "http.listen",
    "http.allow_remote",
    "http.names",
    "http.connections",
    "log.format",
    "limits.connections",
    "limits.timeout",
    "limits.adaptive",
    "limits.adaptive_timeout",
    "limits.allow_private",
    "limits.user_agent",
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn loaded(text: &str) -> Loaded {
        Loaded::parse(text, Path::new("w.toml")).expect("valid")
    }

    #[test]
    fn what_is_made_once_needs_a_restart() {
        let old = loaded("");
        for (text, expected) in [
            ("", &[][..]),
            ("[limits]\nconnections = 512\n", &[]),
            (
                "[limits]\nper_host_rate = 7\n[policy]\ngrace = '1h'\n[log]\nlevel = 'debug'\n",
                &[],
            ),
            ("[[set]]\nname = 'a'\n[[host]]\nmatch = 'b'\n", &[]),
            (
                "[store]\nurl = 'sqlite:other.db'\n[limits]\nconnections = 9\nrobots = false\n",
                &["store.url", "limits.connections"],
            ),
            ("[http]\nlisten = '127.0.0.1:1'\n", &["http.listen"]),
            // The profile limits the wait.
            (
                "[policy]\nprofile = 'eager'\n",
                &["limits.adaptive_timeout"],
            ),
        ] {
            assert_eq!(needs_restart(&old, &loaded(text)), expected, "{text}");
        }
    }

    #[test]
    fn all_keys_that_need_a_restart_exist() {
        let shown = loaded("").shown(false);
        for key in AT_START.iter().filter(|key| **key != "store.password_file") {
            let name = key.rsplit('.').next().unwrap_or_default();
            assert!(
                shown
                    .lines()
                    .any(|line| line.starts_with(&format!("{name} = "))),
                "{key}"
            );
        }
    }
}
