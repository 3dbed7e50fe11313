//! `play --repl`: lines of the terminal, evaluated against the running scene one by one.
//!
//! A thread reads and waits for each answer; where a line goes the caller says. On a terminal lines can be edited
//! and called back (by rustyline), elsewhere they are read as they come, so that a program can ask. Answers go to
//! standard output, what is wrong to standard error. The end of the input ends the thread and nothing else.

use anyhow::Context as _;
use rustyline::error::ReadlineError;
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::sync::mpsc::{SyncSender, sync_channel};

/// What a line has come to: a value as text, nothing for a statement, or what is wrong.
pub type Answer = Result<Option<String>, String>;

const PROMPT: &str = "> ";

/// Starts to read. `ask` hands a line on and is false once nobody listens.
///
/// # Errors
/// The system allows no thread.
pub fn start(
    ask: impl Fn(String, SyncSender<Answer>) -> bool + Send + 'static,
) -> anyhow::Result<()> {
    std::thread::Builder::new()
        .name("repl".to_owned())
        .spawn(move || {
            if std::io::stdin().is_terminal() {
                read_terminal(&ask);
            } else {
                read_lines(&ask);
            }
        })
        .context("cannot start the thread that reads the terminal")?;
    Ok(())
}

fn read_terminal(ask: &dyn Fn(String, SyncSender<Answer>) -> bool) {
    let mut editor = match rustyline::DefaultEditor::new() {
        Ok(editor) => editor,
        Err(error) => {
            tracing::warn!("the terminal cannot be edited on: {error}");
            return read_lines(ask);
        }
    };
    loop {
        match editor.readline(PROMPT) {
            Ok(line) => {
                // A history that is full only forgets.
                let _ = editor.add_history_entry(&line);
                if !evaluate(line, ask) {
                    return;
                }
            }
            // Ctrl-C lets go of the line that was begun.
            Err(ReadlineError::Interrupted) => {}
            Err(_) => return,
        }
    }
}

fn read_lines(ask: &dyn Fn(String, SyncSender<Answer>) -> bool) {
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        if !evaluate(line, ask) {
            return;
        }
    }
}

/// Asks and prints; false once nobody listens.
fn evaluate(line: String, ask: &dyn Fn(String, SyncSender<Answer>) -> bool) -> bool {
    if line.trim().is_empty() {
        return true;
    }
    let (answer_to, answered) = sync_channel(1);
    if !ask(line, answer_to) {
        return false;
    }
    match answered.recv() {
        Ok(Ok(Some(text))) => {
            let mut out = std::io::stdout().lock();
            writeln!(out, "{text}").and_then(|()| out.flush()).is_ok()
        }
        Ok(Ok(None)) => true,
        Ok(Err(text)) => {
            eprintln!("{text}");
            true
        }
        Err(_) => false,
    }
}
