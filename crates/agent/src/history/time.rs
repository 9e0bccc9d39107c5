//! Times as transcripts write them: `2026-11-15T01:03:38.855Z`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Reads a time; one without a zone counts as UTC.
pub(crate) fn parse(text: &str) -> Option<SystemTime> {
    let (date, time) = text.split_once(['T', ' '])?;
    let mut parts = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (clock, zone) = match time.find(['Z', 'z', '+', '-']) {
        Some(at) => (&time[..at], zone_minutes(&time[at..])?),
        None => (time, 0),
    };
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut parts = clock.splitn(3, ':').map(|part| part.parse::<i64>().ok());
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next().unwrap_or(Some(0))?);
    if hour > 24 || minute > 59 || second > 60 || hour < 0 || minute < 0 || second < 0 {
        return None;
    }
    let millis: u64 = match fraction {
        "" => 0,
        _ => format!("{:0<3.3}", fraction.get(..3.min(fraction.len()))?).parse().ok()?,
    };
    let minutes = (days(year, month, day) * 24 + hour) * 60 + minute - zone;
    let seconds = u64::try_from(minutes * 60 + second).ok()?;
    Some(UNIX_EPOCH + Duration::from_millis(seconds * 1000 + millis))
}

/// Writes a time, in UTC.
pub(crate) fn format(time: SystemTime) -> String {
    let millis = millis(time);
    let (seconds, millis) = (millis / 1000, millis % 1000);
    let (days, seconds) = (seconds / 86400, seconds % 86400);
    let (year, month, day) = date(days as i64);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// Milliseconds since 1970.
pub(crate) fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The time so many milliseconds after 1970.
pub(crate) fn from_millis(millis: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(millis.min(253_402_300_799_999))
}

/// `Z`, `+02:00`, `-0530`.
fn zone_minutes(text: &str) -> Option<i64> {
    if text.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let digits: String = text.get(1..)?.chars().filter(|&character| character != ':').collect();
    let hours: i64 = digits.get(..2)?.parse().ok()?;
    let minutes: i64 = digits.get(2..).filter(|rest| !rest.is_empty()).map_or(Some(0), |m| m.parse().ok())?;
    Some(sign * (hours * 60 + minutes))
}

/// Days from 1970-01-01 to a date. Years begin in March here, so that a leap day is the last one.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let in_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + in_year - 719_468
}

fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let in_era = days % 146_097;
    let year = (in_era - in_era / 1460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year + year / 4 - year / 100);
    let month = (5 * in_year + 2) / 153;
    let day = in_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_read_as_they_are_written() {
        let at = |text| parse(text).map(millis);
        assert_eq!(at("2026-11-15T01:03:38.855Z"), Some(1_794_704_618_855));
        assert_eq!(at("2024-02-29T12:00:00+02:00"), Some(1_709_200_800_000));
        assert_eq!(at("2024-02-29T12:00:00.5-0530"), Some(1_709_227_800_500));
        assert_eq!(at("2024-02-29T12:00:00.123456"), Some(1_709_208_000_123));
        for wrong in ["", "yesterday", "2024-13-01T00:00:00Z", "2024-01-01", "1-1-1T1:1:1Z", "2024-01-01TZ"] {
            assert_eq!(at(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(millis in 0_u64..253_402_300_800_000) {
            let time = from_millis(millis);
            prop_assert_eq!(parse(&format(time)), Some(time));
        }

        #[test]
        fn no_text_makes_it_panic(text in "[0-9TZ:.+-]{0,30}|\\PC{0,20}") {
            parse(&text);
        }
    }
}
