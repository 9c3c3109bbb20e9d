//! The lines of the tables of `find` and `check`: what a program took, beside its bound.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;

use clap::ValueEnum;

use crate::report::{exit_code, median, name_of};

/// What a process took.
pub(crate) struct Cost {
    pub(crate) seconds: f64,
    /// Seconds of CPU, in the program and in the kernel for it.
    pub(crate) cpu: f64,
    /// Highest resident memory, in KiB.
    pub(crate) memory: u64,
}

/// One line of the table.
#[derive(Default)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) seconds: Vec<f64>,
    pub(crate) bound: Vec<f64>,
    /// Highest ratio of the time to the bound.
    pub(crate) bar: Option<f64>,
    /// What the tool counts in columns of its own.
    pub(crate) counts: [Option<String>; 2],
    /// KiB
    pub(crate) memory: Option<u64>,
    /// The bars that were missed.
    pub(crate) faults: Vec<String>,
}

impl Row {
    pub(crate) fn of(case: impl ValueEnum) -> Self {
        Self {
            name: name_of(case),
            ..Self::default()
        }
    }

    /// Adds a run.
    pub(crate) fn note(&mut self, cost: &Cost) {
        self.seconds.push(cost.seconds);
        self.memory = self.memory.max(Some(cost.memory));
    }
}

/// Measures the cases and prints their table, whose own columns have the names `counts`. The exit code is 1 if a bar was
/// missed that does not depend on the machine.
pub(crate) fn measure<C: Copy>(
    cases: &[C],
    counts: [&str; 2],
    measure: impl Fn(C) -> Result<Vec<Row>, Box<dyn Error>>,
) -> Result<ExitCode, Box<dyn Error>> {
    let [first, second] = counts;
    println!(
        "{:<18} {:>9} {:>9} {:>8} {:>5} {first:>10} {second:>12} {:>10}",
        "case", "bound s", "s", "× bound", "bar", "MiB"
    );
    let mut is_missed = false;
    for &case in cases {
        for row in measure(case)? {
            println!("{row}");
            is_missed |= !row.faults.is_empty();
        }
    }
    Ok(exit_code(is_missed))
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or_dash = |value: Option<String>| value.unwrap_or_else(|| "–".to_owned());
        let seconds = median(self.seconds.iter().copied());
        let bound = (!self.bound.is_empty()).then(|| median(self.bound.iter().copied()));
        let ratio = bound.map(|bound| seconds / bound);
        let slow = ratio.zip(self.bar).is_some_and(|(ratio, bar)| ratio > bar);
        let [first, second] = self.counts.clone().map(or_dash);
        write!(
            f,
            "{:<18} {:>9} {seconds:>9.3} {:>8} {:>5} {first:>10} {second:>12} {:>10}  {}{}",
            self.name,
            or_dash(bound.map(|bound| format!("{bound:.3}"))),
            or_dash(ratio.map(|ratio| format!("{ratio:.2}"))),
            or_dash(self.bar.map(|bar| format!("{bar:.1}"))),
            or_dash(self.memory.map(|kib| format!("{:.1}", kib as f64 / 1024.0))),
            self.faults.join(", "),
            if slow { "slower than the bar" } else { "" },
        )
    }
}
