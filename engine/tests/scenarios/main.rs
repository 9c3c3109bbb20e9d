//! Single situations on the simulated network, written out and told to the millisecond. The random ones are in `sim`.

mod adaptive;
mod balance;
mod batch;
mod hosts;
mod one_host;
mod rates;
mod regression;
mod resilience;
