//! Single scenarios on the simulated network with exact times in milliseconds. Random programs are in `sim`.

mod adaptive;
mod balance;
mod batch;
mod hosts;
mod one_host;
mod rates;
mod regression;
mod resilience;
mod streams;
