//! What the tools report in the same way: the names of values, medians, and the exit code.

use std::process::ExitCode;

use clap::ValueEnum;

/// The exit code of a tool: 1 if a bar was missed.
pub(crate) fn exit_code(is_missed: bool) -> ExitCode {
    match is_missed {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    }
}

/// The name of a value on the command line.
pub(crate) fn name_of(value: impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        f64::midpoint(values[middle - 1], values[middle])
    }
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn median_of_odd_and_even() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0].into_iter()), 2.5);
    }
}
