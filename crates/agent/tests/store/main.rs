//! Stores: the contract, the way in and the way out.
#![allow(clippy::unwrap_used, reason = "a test")]

mod contract;
mod mirror;
mod transfer;
