//! The program: parse, do what the subcommand says, print the error chain.
//!
//! Exit codes: 0 done (warnings allowed), 1 the work failed, 2 wrong usage.

mod cli;

use clap::Parser as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = cli::Args::parse();
    cli::start_log(&args);
    let is_json = args.is_json();
    match cli::run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => cli::report(&error, is_json),
    }
}
