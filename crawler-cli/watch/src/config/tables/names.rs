//! The names of values of which one is chosen.

use crate::config::kinds::Named;
use crate::config::sections::{LogFormat, LogLevel};
use check::host::HeadUse;
use jobs::{CatchUp, Overlap};
use verdict::life::Profile;

impl Named for Profile {
    const NAMES: &'static [(&'static str, Self)] =
        &[("default", Self::Default), ("eager", Self::Eager)];
    const ALLOWED: &'static str = "\"default\" or \"eager\"";
}

impl Named for LogFormat {
    const NAMES: &'static [(&'static str, Self)] = &[("text", Self::Text), ("json", Self::Json)];
    const ALLOWED: &'static str = "\"text\" or \"json\"";
}

impl Named for LogLevel {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("error", Self::Error),
        ("warn", Self::Warn),
        ("info", Self::Info),
        ("debug", Self::Debug),
        ("trace", Self::Trace),
    ];
    const ALLOWED: &'static str = "\"error\", \"warn\", \"info\", \"debug\" or \"trace\"";
}

impl Named for HeadUse {
    const NAMES: &'static [(&'static str, Self)] = &[("auto", Self::Auto), ("never", Self::Never)];
    const ALLOWED: &'static str = "\"auto\" or \"never\"";
}

impl Named for Overlap {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("forbid", Self::Forbid),
        ("queue_one", Self::QueueOne),
        ("allow", Self::Allow),
    ];
    const ALLOWED: &'static str = "\"forbid\", \"queue_one\" or \"allow\"";
}

impl Named for CatchUp {
    const NAMES: &'static [(&'static str, Self)] = &[("once", Self::Once), ("skip", Self::Skip)];
    const ALLOWED: &'static str = "\"once\" or \"skip\"";
}
