//! The race reproduced and prevented, and how to use the parts.

pub mod outside;
