//! `aiodb serve` from outside: as clients, operators and a real redis-server see it.

mod access;
mod client;
mod collections;
mod comparison;
mod concurrency;
mod generator;
mod kills;
mod limits;
mod monitoring;
mod operations;
mod protocol;
mod publishing;
mod raw;
mod scripting;
mod server;
mod settings;
mod storage;
mod tls;
mod tools;
mod users;
mod waiting;
