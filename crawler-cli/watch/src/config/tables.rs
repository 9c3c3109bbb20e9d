//! The tables of the configuration and their keys: one row for each. The reader, the example and what is shown are all
//! made from these rows.

mod inline;
mod keys;
mod names;

use toml::Spanned;
use toml::de::DeValue;

use super::Config;
use super::entries::{HostConfig, ScheduleConfig, SetConfig};
use super::reader::{Key, Reader};
use keys::{GUARD, HOST, HTTP, LIMITS, LOG, POLICY, RECONCILE, SCHEDULE, SET, STORE};

/// A table of the configuration.
pub(super) trait Table: Sync {
    fn name(&self) -> &'static str;
    fn doc(&self) -> &'static str;
    /// Whether the table can be there several times.
    fn is_list(&self) -> bool;
    fn keys(&self) -> Vec<&'static str>;
    /// Reads the table into the configuration; `None`: the file does not have it.
    fn read(
        &self,
        into: &mut Config,
        reader: &mut Reader<'_>,
        value: Option<&Spanned<DeValue<'_>>>,
    );
    /// The rows of each entry, with the values of the configuration.
    fn rows(&self, config: &Config) -> Vec<Vec<Row>>;
    /// The rows without values.
    fn samples(&self) -> Vec<Row>;
}

/// A key for the texts about the configuration.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) doc: &'static str,
    pub(super) allowed: &'static str,
    pub(super) sample: &'static str,
    pub(super) is_required: bool,
    /// As TOML; `None` if the key is not set.
    pub(super) value: Option<String>,
}

impl Row {
    fn new<T>(key: &Key<T>, value: Option<String>) -> Self {
        Self {
            name: key.name,
            doc: key.doc,
            allowed: key.allowed,
            sample: key.sample,
            is_required: key.is_required,
            value,
        }
    }
}

/// All tables, in the order of the example.
pub(super) static TABLES: &[&dyn Table] = &[
    &Section {
        name: "store",
        doc: "Where URLs, results and jobs are kept.",
        keys: STORE,
        of: |c| &c.store,
        of_mut: |c| &mut c.store,
    },
    &Section {
        name: "http",
        doc: "Where /metrics, /healthz, /readyz and /version are served.",
        keys: HTTP,
        of: |c| &c.http,
        of_mut: |c| &mut c.http,
    },
    &Section {
        name: "log",
        doc: "What is logged on standard error.",
        keys: LOG,
        of: |c| &c.log,
        of_mut: |c| &mut c.log,
    },
    &Section {
        name: "limits",
        doc: "How much is asked at once.",
        keys: LIMITS,
        of: |c| &c.limits,
        of_mut: |c| &mut c.limits,
    },
    &Section {
        name: "policy",
        doc: "When a URL is reported, gone and pruned, and when it is asked again.",
        keys: POLICY,
        of: |c| &c.policy,
        of_mut: |c| &mut c.policy,
    },
    &Section {
        name: "reconcile",
        doc: "How often URLs in doubt are asked again.",
        keys: RECONCILE,
        of: |c| &c.reconcile,
        of_mut: |c| &mut c.reconcile,
    },
    &Section {
        name: "guard",
        doc: "What protects against failures that are not the fault of URLs.",
        keys: GUARD,
        of: |c| &c.guard,
        of_mut: |c| &mut c.guard,
    },
    &List {
        name: "host",
        doc: "What is different at some hosts: one ceiling for all checks and jobs of the host.",
        keys: HOST,
        new: HostConfig::unset,
        of: |c| &c.hosts,
        of_mut: |c| &mut c.hosts,
    },
    &List {
        name: "set",
        doc: "A URL set and its source, which is read at the start, on SIGHUP and by schedules.",
        keys: SET,
        new: SetConfig::unset,
        of: |c| &c.sets,
        of_mut: |c| &mut c.sets,
    },
    &List {
        name: "schedule",
        doc: "A job at given times.",
        keys: SCHEDULE,
        new: ScheduleConfig::unset,
        of: |c| &c.schedules,
        of_mut: |c| &mut c.schedules,
    },
];

/// A table that is there once.
struct Section<T: 'static> {
    name: &'static str,
    doc: &'static str,
    keys: &'static [Key<T>],
    of: fn(&Config) -> &T,
    of_mut: fn(&mut Config) -> &mut T,
}

impl<T> Table for Section<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn doc(&self) -> &'static str {
        self.doc
    }

    fn is_list(&self) -> bool {
        false
    }

    fn keys(&self) -> Vec<&'static str> {
        self.keys.iter().map(|key| key.name).collect()
    }

    fn read(
        &self,
        into: &mut Config,
        reader: &mut Reader<'_>,
        value: Option<&Spanned<DeValue<'_>>>,
    ) {
        let table = value.and_then(|value| value.get_ref().as_table());
        if let (Some(value), None) = (value, table) {
            let why = format!("not a table; write [{}]", self.name);
            reader.within(self.name.to_owned(), |reader| {
                reader.wrong(value.span(), &why)
            });
        }
        reader.section(self.name, self.keys, (self.of_mut)(into), table);
    }

    fn rows(&self, config: &Config) -> Vec<Vec<Row>> {
        let table = (self.of)(config);
        let rows = self.keys.iter().map(|key| Row::new(key, (key.show)(table)));
        vec![rows.collect()]
    }

    fn samples(&self) -> Vec<Row> {
        self.keys.iter().map(|key| Row::new(key, None)).collect()
    }
}

/// A table that can be there several times.
struct List<T: 'static> {
    name: &'static str,
    doc: &'static str,
    keys: &'static [Key<T>],
    /// An entry whose keys are not set. A required key that stays so is an error.
    new: fn() -> T,
    of: fn(&Config) -> &Vec<T>,
    of_mut: fn(&mut Config) -> &mut Vec<T>,
}

impl<T> Table for List<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn doc(&self) -> &'static str {
        self.doc
    }

    fn is_list(&self) -> bool {
        true
    }

    fn keys(&self) -> Vec<&'static str> {
        self.keys.iter().map(|key| key.name).collect()
    }

    fn read(
        &self,
        into: &mut Config,
        reader: &mut Reader<'_>,
        value: Option<&Spanned<DeValue<'_>>>,
    ) {
        let Some(value) = value else {
            return;
        };
        let why = format!("not a list of tables; write [[{}]]", self.name);
        let Some(entries) = value.get_ref().as_array() else {
            return reader.within(self.name.to_owned(), |reader| {
                reader.wrong(value.span(), &why)
            });
        };
        for (index, entry) in entries.iter().enumerate() {
            let mut new = (self.new)();
            reader.within(format!("{}[{index}]", self.name), |reader| {
                reader.note(&entry.span());
                match entry.get_ref().as_table() {
                    Some(table) => reader.table(self.keys, &mut new, table, entry.span()),
                    None => reader.wrong(entry.span(), &why),
                }
            });
            (self.of_mut)(into).push(new);
        }
    }

    fn rows(&self, config: &Config) -> Vec<Vec<Row>> {
        let rows = |entry: &T| {
            let rows = self.keys.iter().map(|key| Row::new(key, (key.show)(entry)));
            rows.collect()
        };
        (self.of)(config).iter().map(rows).collect()
    }

    fn samples(&self) -> Vec<Row> {
        self.keys.iter().map(|key| Row::new(key, None)).collect()
    }
}

/// The tables that have a key with this name, as they are written.
pub(super) fn tables_with(key: &str) -> Vec<String> {
    let tables = TABLES.iter().filter(|table| table.keys().contains(&key));
    tables.map(|table| written(*table)).collect()
}

/// `[limits]`, `[[host]]`
pub(super) fn written(table: &dyn Table) -> String {
    match table.is_list() {
        true => format!("[[{}]]", table.name()),
        false => format!("[{}]", table.name()),
    }
}
