//! Finding the user's `claude`.
