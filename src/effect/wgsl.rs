//! The text of an effect as it stands beside others in one shader.
//!
//! Every name that an author declares gets a prefix, so that two effects may both have a `fn flicker`;
//! `Splat` becomes the host's `EffectSplat`; and every loop counts its turns, so that none goes on for
//! ever. No line is added or taken away: line n here is line n of the author's file.
//!
//! It works on words and brackets alone. Whether the text means anything is naga's to say.

use std::collections::BTreeSet;

/// What an author calls the host's splat, and what it is called.
const SPLAT: (&str, &str) = ("Splat", "EffectSplat");
/// What stands at the beginning of every loop's body.
const COUNTED: &str = " effect_turns += 1u; if effect_turns > EFFECT_TURNS_MAX { break; }";

/// A piece of WGSL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'t> {
    Word(&'t str),
    /// One character that is no part of a word.
    Mark(char),
    /// Blanks and comments.
    Gap(&'t str),
}

/// Cuts a text into pieces; joined they are the text.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let length = |test: &dyn Fn(char) -> bool| rest.find(|c| !test(c)).unwrap_or(rest.len());
        let (token, taken) = if rest.starts_with("//") {
            let end = rest.find('\n').unwrap_or(rest.len());
            (Token::Gap(&rest[..end]), end)
        } else if rest.starts_with("/*") {
            let end = comment_end(rest);
            (Token::Gap(&rest[..end]), end)
        } else if first.is_whitespace() {
            let end = length(&char::is_whitespace);
            (Token::Gap(&rest[..end]), end)
        } else if is_word(first) {
            let end = length(&is_word);
            (Token::Word(&rest[..end]), end)
        } else {
            (Token::Mark(first), first.len_utf8())
        };
        found.push(token);
        rest = &rest[taken..];
    }
    found
}

/// Where a comment ends that `text` begins with; WGSL's may hold others.
fn comment_end(text: &str) -> usize {
    let mut depth = 0_u32;
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// Names that `text` declares outside of all brackets.
pub(super) fn declared(text: &str) -> BTreeSet<&str> {
    let all = tokens(text);
    let solid: Vec<Token<'_>> = (all.iter().copied())
        .filter(|t| !matches!(t, Token::Gap(_)))
        .collect();
    let mut names = BTreeSet::new();
    let mut depth = 0_i32;
    for (i, token) in solid.iter().enumerate() {
        match token {
            Token::Mark('{') => depth += 1,
            Token::Mark('}') => depth -= 1,
            Token::Word("fn" | "struct" | "const" | "alias" | "override" | "var") if depth == 0 => {
                let mut after = &solid[i + 1..];
                // var<private> name
                if after.first() == Some(&Token::Mark('<')) {
                    let end = after.iter().position(|t| *t == Token::Mark('>'));
                    after = &after[end.map_or(after.len(), |e| e + 1)..];
                }
                if let Some(Token::Word(name)) = after.first() {
                    names.insert(*name);
                }
            }
            _ => {}
        }
    }
    names
}

/// The text with `prefix` before every name of its own.
pub(super) fn prefixed(text: &str, prefix: &str) -> String {
    let own = declared(text);
    let all = tokens(text);
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    // The last piece that is no gap.
    let mut before = Token::Mark(' ');
    // Depth of braces; of round brackets; where a struct's members stand; a loop's body comes.
    let (mut braces, mut rounds) = (0_i32, 0_i32);
    let mut members_at: Option<i32> = None;
    let mut is_struct_next = false;
    let mut loop_at: Option<i32> = None;
    for (i, token) in all.iter().enumerate() {
        match token {
            Token::Gap(gap) => {
                out.push_str(gap);
                continue;
            }
            Token::Mark(mark) => {
                out.push(*mark);
                match mark {
                    '{' => {
                        braces += 1;
                        if std::mem::take(&mut is_struct_next) {
                            members_at = Some(braces);
                        } else if loop_at == Some(rounds) {
                            loop_at = None;
                            out.push_str(COUNTED);
                        }
                    }
                    '}' => {
                        if members_at == Some(braces) {
                            members_at = None;
                        }
                        braces -= 1;
                    }
                    '(' => rounds += 1,
                    ')' => rounds -= 1,
                    _ => {}
                }
            }
            Token::Word(word) => {
                let is_field = before == Token::Mark('.') || before == Token::Mark('@');
                let is_member = members_at == Some(braces)
                    && rounds == 0
                    && all[i + 1..].iter().find(|t| !matches!(t, Token::Gap(_)))
                        == Some(&Token::Mark(':'));
                if is_field || is_member {
                    out.push_str(word);
                } else if own.contains(word) {
                    out.push_str(prefix);
                    out.push_str(word);
                } else if *word == SPLAT.0 {
                    out.push_str(SPLAT.1);
                } else {
                    match *word {
                        "struct" => is_struct_next = true,
                        "for" | "while" | "loop" => loop_at = Some(rounds),
                        _ => {}
                    }
                    out.push_str(word);
                }
            }
        }
        before = *token;
    }
    out
}

/// Whether there is any loop in it.
pub(super) fn has_loops(text: &str) -> bool {
    tokens(text)
        .iter()
        .any(|t| matches!(t, Token::Word("for" | "while" | "loop")))
}

/// A message about prefixed text in the author's own words.
pub(super) fn unprefixed(message: &str, prefix: &str) -> String {
    message.replace(prefix, "").replace(SPLAT.1, SPLAT.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_names_are_prefixed_and_nothing_else() {
        let text = "// fn no\nstruct Uniforms { speed: f32, /* } */ @size(16) glow: vec3f }\n\
                    const GLOW = 1.0;\nfn speed(glow: f32) -> f32 { return glow * GLOW; }\n\
                    fn effect(splat: Splat, u: Uniforms, t: f32) -> Splat { \
                    var s = splat; s.opacity = speed(u.speed); return s; }\n";
        let names: Vec<&str> = declared(text).into_iter().collect();
        assert_eq!(names, ["GLOW", "Uniforms", "effect", "speed"]);
        let out = prefixed(text, "p_");
        assert_eq!(out.lines().count(), text.lines().count());
        assert!(out.contains("struct p_Uniforms { speed: f32"), "{out}");
        assert!(out.contains("fn p_speed(glow: f32)"), "{out}");
        assert!(out.contains("p_speed(u.speed)"), "{out}");
        assert!(out.contains("splat: EffectSplat, u: p_Uniforms"), "{out}");
        assert!(out.contains("return glow * p_GLOW"), "{out}");
    }

    #[test]
    fn every_loop_counts_its_turns_at_the_beginning_of_its_body() {
        let text = "fn f() { for (var i = 0; i < 3; i++) { g(); }\n while (h(1) < 2) { }\n loop\n{ break; } }";
        let out = prefixed(text, "p_");
        assert_eq!(out.matches(COUNTED).count(), 3, "{out}");
        assert!(out.contains(&format!("i++) {{{COUNTED} g();")), "{out}");
        assert_eq!(out.lines().count(), text.lines().count());
    }

    #[test]
    fn a_comment_without_an_end_is_the_rest() {
        for text in ["/* a /* b */", "/*", "a //", "é/*é*/é"] {
            let joined: String = (tokens(text).iter())
                .map(|t| match t {
                    Token::Word(s) | Token::Gap(s) => (*s).to_owned(),
                    Token::Mark(c) => c.to_string(),
                })
                .collect();
            assert_eq!(joined, text);
        }
    }
}
