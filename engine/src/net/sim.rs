//! The simulated network.
