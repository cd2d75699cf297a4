/// Finds the name that was probably intended.
@frozen package enum Suggestion {
    /// ` (did you mean 'audiences'?)`, or an empty string if no candidate is close enough.
    package static func phrase(for name: String, among candidates: [String]) -> String {
        nearest(to: name, among: candidates).map { " (did you mean '\($0)'?)" } ?? ""
    }

    /// Names compared for one suggestion, to bound the time.
    static let maximumCandidates = 256
    /// Errors of one kind that get a suggestion, to bound the time.
    static let maximumSuggestions = 100

    /// The candidate with the smallest edit distance from `name`, at most a third of the letters; else the
    /// first one that begins with it.
    package static func nearest(to name: String, among candidates: [String]) -> String? {
        let wanted = folded(name)
        guard !wanted.isEmpty, wanted.count <= 64 else { return nil }
        var best: (name: String, distance: Int)?
        for candidate in candidates.prefix(maximumCandidates) where candidate != name {
            let letters = folded(candidate)
            let allowed = max(1, min(3, max(wanted.count, letters.count) / 3))
            guard abs(wanted.count - letters.count) <= allowed else { continue }
            let distance = distance(wanted, letters)
            if distance <= allowed, distance < (best?.distance ?? .max) { best = (candidate, distance) }
        }
        return best?.name ?? longer(than: wanted, among: candidates)
    }

    /// The first candidate that begins with a word, such as `warning` for `warn`.
    private static func longer(than wanted: [UInt8], among candidates: [String]) -> String? {
        guard wanted.count >= 3 else { return nil }
        return candidates.prefix(maximumCandidates).first { candidate in
            let letters = folded(candidate)
            return letters.count > wanted.count && letters.starts(with: wanted)
        }
    }

    /// `headerBytes`, `Header-Bytes` and `header_bytes` compare equal.
    private static func folded(_ name: String) -> [UInt8] {
        name.utf8.filter { $0 != 0x5F && $0 != 0x2D }.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
    }

    /// The edit distance of two short words: insertions, deletions, substitutions and transpositions.
    private static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
        if left.isEmpty || right.isEmpty { return max(left.count, right.count) }
        var beforeLast = [Int](repeating: 0, count: right.count + 1)
        var last = Array(0...right.count)
        for (row, a) in left.enumerated() {
            var current = [row + 1]
            for (column, b) in right.enumerated() {
                var cost = min(last[column] + (a == b ? 0 : 1), last[column + 1] + 1, current[column] + 1)
                if row > 0, column > 0, a == right[column - 1], left[row - 1] == b {
                    cost = min(cost, beforeLast[column - 1] + 1)
                }
                current.append(cost)
            }
            (beforeLast, last) = (last, current)
        }
        return last[right.count]
    }
}

/// Text of the file for a message: in quotes, truncated, without control characters.
package func quoted(_ text: String) -> String {
    var shown = ""
    for scalar in text.unicodeScalars.prefix(60) {
        let isControl =
            scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value) || (0x2028...0x202E).contains(scalar.value)
        shown.unicodeScalars.append(isControl ? "\u{FFFD}" : scalar)
    }
    return "'\(shown)\(text.unicodeScalars.count > 60 ? "…" : "")'"
}

/// `a`, `a or b`, `a, b or c`.
func alternatives(_ names: [String]) -> String {
    guard let last = names.last, names.count > 1 else { return names.first ?? "" }
    return names.dropLast().joined(separator: ", ") + " or " + last
}
