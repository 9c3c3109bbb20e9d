//! Single situations on the simulated network, written out and told to the millisecond. The random ones are in `sim`.

mod hosts;
mod one_host;
mod regression;
mod resilience;
