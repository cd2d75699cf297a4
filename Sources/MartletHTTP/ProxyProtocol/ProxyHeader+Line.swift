/// Version 1: `PROXY TCP4 192.0.2.1 198.51.100.7 56324 443` and CRLF.
extension ProxyHeader {
    /// The longest line with two IPv6 addresses, CRLF included.
    private static let longestLine = 107

    static func parseLine(_ bytes: Span<UInt8>) -> Outcome {
        let start = Array("PROXY ".utf8)
        for index in 0..<min(start.count, bytes.count) where bytes[index] != start[index] {
            return .failure(.badSignature)
        }
        var end = min(start.count, bytes.count)
        while end < bytes.count, bytes[end] != 0x0D {
            // Longer lines and bytes other than text are invalid.
            guard end < longestLine &- 2, (0x20...0x7E).contains(bytes[end]) else { return .failure(.badLine) }
            end &+= 1
        }
        guard end &+ 1 < bytes.count else { return end > longestLine &- 2 ? .failure(.badLine) : .needMore }
        guard bytes[end &+ 1] == 0x0A else { return .failure(.badLine) }
        var line: [UInt8] = []
        for index in start.count..<end { line.append(bytes[index]) }
        do throws(Failure) { return .complete(count: end &+ 2, peer: try peer(of: line)) } catch {
            return .failure(error)
        }
    }

    /// Parses the part between `PROXY ` and the CRLF.
    private static func peer(of line: [UInt8]) throws(Failure) -> Peer {
        let words = line.split(separator: 0x20, omittingEmptySubsequences: false)
        let family = words.first.map { String(decoding: $0, as: UTF8.self) } ?? ""
        // The rest of the line is ignored, as the specification requires.
        if family == "UNKNOWN" { return .unknown }
        guard family == "TCP4" || family == "TCP6", words.count == 5 else { throw .badLine }
        let read = family == "TCP4" ? AddressText.ipv4 : AddressText.ipv6
        guard let source = read(words[1]), read(words[2]) != nil else { throw .badAddress }
        guard let port = AddressText.port(words[3]), AddressText.port(words[4]) != nil else { throw .badPort }
        return .address(family == "TCP4" ? Address(ipv4: source, port: port) : Address(bytes: source, port: port))
    }
}

/// Parses addresses and ports; each number has one spelling.
enum AddressText {
    /// Four decimal numbers without leading zeros.
    static func ipv4(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        let parts = text.split(separator: 0x2E, omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        var bytes: [UInt8] = []
        for part in parts {
            guard let number = decimal(part, atMost: 255) else { return nil }
            bytes.append(UInt8(truncatingIfNeeded: number))
        }
        return bytes
    }

    /// Eight groups of up to four hexadecimal digits; one `::` may replace zero groups, and the last two may be written
    /// as IPv4 (RFC 4291 §2.2).
    static func ipv6(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        let groups = text.split(separator: 0x3A, omittingEmptySubsequences: false)
        guard (3...9).contains(groups.count) else { return nil }
        var (bytes, gap): ([UInt8], Int?) = ([], nil)
        for (index, group) in groups.enumerated() {
            if group.isEmpty {
                // `::` is one empty group inside, and two at either end.
                if index == 0 || index == groups.count &- 1 {
                    let neighbor = index == 0 ? groups[1] : groups[groups.count &- 2]
                    guard neighbor.isEmpty else { return nil }
                    continue
                }
                guard gap == nil else { return nil }
                gap = bytes.count
            } else if index == groups.count &- 1, group.contains(0x2E) {
                guard let tail = ipv4(group) else { return nil }
                bytes += tail
            } else {
                guard let number = hexadecimal(group) else { return nil }
                bytes += [UInt8(truncatingIfNeeded: number >> 8), UInt8(truncatingIfNeeded: number)]
            }
        }
        guard let gap else { return bytes.count == 16 ? bytes : nil }
        guard bytes.count <= 14 else { return nil }
        bytes.insert(contentsOf: [UInt8](repeating: 0, count: 16 &- bytes.count), at: gap)
        return bytes
    }

    static func port(_ text: ArraySlice<UInt8>) -> UInt16? {
        decimal(text, atMost: 65_535).map { UInt16(truncatingIfNeeded: $0) }
    }

    private static func decimal(_ digits: ArraySlice<UInt8>, atMost most: Int) -> Int? {
        guard (1...5).contains(digits.count), digits.count == 1 || digits.first != 0x30 else { return nil }
        var number = 0
        for digit in digits {
            guard ASCII.isDigit(digit) else { return nil }
            number = number &* 10 &+ Int(digit &- 0x30)
        }
        return number <= most ? number : nil
    }

    private static func hexadecimal(_ digits: ArraySlice<UInt8>) -> UInt16? {
        guard (1...4).contains(digits.count) else { return nil }
        var number: UInt16 = 0
        for digit in digits {
            guard let value = ASCII.hexValue(digit) else { return nil }
            number = number << 4 | UInt16(value)
        }
        return number
    }
}
