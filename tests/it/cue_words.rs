//! Rules of the user that are found by words of command and prohibition (rule R2).

mod hostile;
mod injections;
mod sentences;
