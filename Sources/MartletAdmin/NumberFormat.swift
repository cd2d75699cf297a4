internal import MartletCore
internal import MartletHTTP

/// Formats numbers for people.
enum NumberFormat {
    /// `12,345`.
    static func count(_ value: Int) -> String {
        let digits = String(value.magnitude)
        var grouped = ""
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index) % 3 == 0 { grouped.append(",") }
            grouped.append(digit)
        }
        return value < 0 ? "-\(grouped)" : grouped
    }

    /// `2 d 3 h`, `5 min 7 s`, `12 s`.
    static func duration(_ seconds: Int64) -> String {
        let seconds = max(seconds, 0)
        if seconds >= 86_400 { return "\(seconds / 86_400) d \(seconds % 86_400 / 3600) h" }
        if seconds >= 3600 { return "\(seconds / 3600) h \(seconds % 3600 / 60) min" }
        if seconds >= 60 { return "\(seconds / 60) min \(seconds % 60) s" }
        return "\(seconds) s"
    }

    /// Microseconds as `350 µs`, `4.2 ms`, `1.3 s`.
    static func latency(_ microseconds: Double?) -> String {
        guard let microseconds, microseconds.isFinite else { return "–" }
        if microseconds < 1000 { return "\(Int(microseconds.rounded())) µs" }
        if microseconds < 1_000_000 { return "\(tenths(microseconds / 1000)) ms" }
        return "\(tenths(microseconds / 1_000_000)) s"
    }

    /// `64.0 MiB`.
    static func bytes(_ value: Int) -> String {
        var size = Double(value)
        for unit in ["B", "KiB", "MiB"] {
            if size < 1024 { return unit == "B" ? "\(value) B" : "\(tenths(size)) \(unit)" }
            size /= 1024
        }
        return "\(tenths(size)) GiB"
    }

    /// `12.5 %`.
    static func share(_ part: Int, of whole: Int) -> String {
        whole > 0 ? "\(tenths(Double(part) / Double(whole) * 100)) %" : "–"
    }

    /// `31.4 per second`.
    static func rate(_ count: Int, seconds: Int64) -> String {
        "\(tenths(Double(count) / Double(max(seconds, 1)))) per second"
    }

    private static func tenths(_ value: Double) -> String {
        guard value.isFinite, abs(value) < 1e15 else { return "–" }
        let tenths = Int64((value * 10).rounded())
        return "\(tenths / 10).\(abs(tenths % 10))"
    }
}

/// Formats instants for people.
enum HTTPDateText {
    /// `Sun, 06 Nov 1994 08:49:37 GMT`.
    static func text(_ time: UnixTime) -> String {
        var buffer = ByteBuffer(capacity: 32)
        HTTPDate(time).append(to: &buffer)
        return String(decoding: buffer.array, as: UTF8.self)
    }
}
