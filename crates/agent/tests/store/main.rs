//! Stores: the contract, the way in and the way out.

mod contract;
mod mirror;
mod transfer;
