//! Tests of the chat without its screen: turns, refusals, compaction, sessions, the index.

mod commands;
mod index;
mod markdown;
mod models;
mod pieces;
mod recall;
mod remote;
mod screen;
mod server;
mod support;
mod turns;
