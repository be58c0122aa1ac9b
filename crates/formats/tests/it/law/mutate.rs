//! Damage to a JSON file like that by typing errors and faulty programs.

use super::Dice;
use serde_json::{Map, Value};

/// Damages a file of JSON or JSON lines in one to three places.
pub fn damaged(text: &str, seed: u64) -> String {
    let mut dice = Dice::new(seed ^ 0x00c0_ffee);
    let stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let mut values: Vec<Value> = stream.collect::<Result<_, _>>().unwrap();
    for _ in 0..1 + dice.below(3) {
        let at = dice.below(values.len());
        let places = count(&values[at]);
        let place = dice.below(places);
        damage(&mut values[at], &mut { place }, &mut dice);
    }
    let lines: Vec<String> = values.iter().map(Value::to_string).collect();
    lines.join("\n")
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(all) => all.iter().map(count).sum::<usize>(),
        Value::Object(object) => object.values().map(count).sum(),
        _ => 0,
    }
}

/// Damages the value at a position, counted from the outside.
fn damage(value: &mut Value, place: &mut usize, dice: &mut Dice) -> bool {
    if *place == 0 {
        change(value, dice);
        return true;
    }
    *place -= 1;
    match value {
        Value::Array(all) => all.iter_mut().any(|value| damage(value, place, dice)),
        Value::Object(object) => object.values_mut().any(|value| damage(value, place, dice)),
        _ => false,
    }
}

fn change(value: &mut Value, dice: &mut Dice) {
    match value {
        Value::Object(object) if !object.is_empty() => change_object(object, dice),
        Value::Array(all) if !all.is_empty() => match dice.below(4) {
            0 => drop(all.remove(dice.below(all.len()))),
            1 => {
                let at = dice.below(all.len());
                all.insert(at, all[at].clone());
            }
            2 => all.reverse(),
            _ => *value = Value::Object(Map::from_iter([("list".to_owned(), value.take())])),
        },
        Value::String(text) => match dice.below(4) {
            0 => *text = garbled(text, dice),
            1 => *value = Value::Array(vec![value.take()]),
            2 => *value = Value::Null,
            _ => *value = Value::Object(Map::from_iter([("inner".to_owned(), value.take())])),
        },
        other => *other = [Value::Null, Value::from(7), Value::from("seven")][dice.below(3)].clone(),
    }
}

fn change_object(object: &mut Map<String, Value>, dice: &mut Dice) {
    let names: Vec<String> = object.keys().cloned().collect();
    let name = &names[dice.below(names.len())];
    match dice.below(5) {
        0 => drop(object.remove(name)),
        1 => drop(object.insert("extra".into(), Value::from(1))),
        // A key is renamed in place.
        _ => {
            let garbled = garbled(name, dice);
            let entries: Vec<(String, Value)> = std::mem::take(object).into_iter().collect();
            let renamed = |(own, value)| if own == *name { (garbled.clone(), value) } else { (own, value) };
            object.extend(entries.into_iter().map(renamed));
        }
    }
}

/// Returns a name in another spelling.
fn garbled(name: &str, dice: &mut Dice) -> String {
    // A word that identifies a text stays whole.
    if name.contains("word") {
        return name.to_owned();
    }
    let mut letters: Vec<char> = name.chars().collect();
    let at = dice.below(letters.len());
    match dice.below(6) {
        0 if letters.len() > 1 => drop(letters.remove(at)),
        1 => letters.insert(at, 'q'),
        2 => letters = name.to_uppercase().chars().collect(),
        3 => letters = format!("my_{name}").chars().collect(),
        4 => letters = "something".chars().collect(),
        _ => letters.push('s'),
    }
    letters.into_iter().collect()
}
