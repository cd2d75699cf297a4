extension RequestHead {
    /// No method has so long a name.
    static let maximumMethodBytes = 32

    /// Reads a common request line at the start: a common method, a path, an optional query.
    /// - Returns: the offset of the fields, or −1 when `readRequestLine` has to decide.
    @inline(__always)
    mutating func readRequestLineFast(_ bytes: Span<UInt8>, maximumTargetBytes: Int) -> Int {
        guard let common = Method.common(bytes, at: 0) else { return -1 }
        let slash = common.count &+ 1
        guard bytes.has(UInt8(ascii: "/"), at: slash) else { return -1 }
        var end = bytes.endOfTargetPart(from: slash)
        let question = end
        while bytes.has(UInt8(ascii: "?"), at: end) { end = bytes.endOfTargetPart(from: end &+ 1) }
        guard end &- slash <= maximumTargetBytes, bytes.hasLineEnd(at: end &+ 9), bytes.has(0x20, at: end),
            let isOld = HTTPVersion.isHTTP10(bytes, at: end &+ 1)
        else { return -1 }
        method = common.method
        methodText = ByteRange(ordered: 0, common.count)
        target = ByteRange(ordered: slash, end)
        path = ByteRange(ordered: slash, question)
        query = question == end ? .empty : ByteRange(ordered: question, end)
        isHTTP10 = isOld
        return end &+ 11
    }

    /// Reads the request line at `start` (RFC 9112 §3): token, one space, target, one space, version, CRLF.
    @inline(never)
    mutating func readRequestLine(_ bytes: Span<UInt8>, at start: Int, maximumTargetBytes: Int) -> LineOutcome {
        if let common = Method.common(bytes, at: start) {
            method = common.method
            methodText = ByteRange(start: start, count: common.count)
        } else if let stopped = readMethod(bytes, at: start) {
            return stopped
        }
        let next = methodText.end &+ 1
        if let stopped = readTarget(bytes, at: next, maximumTargetBytes: maximumTargetBytes) { return stopped }
        if let failure = splitTarget(bytes) { return .failure(failure) }
        return readVersion(bytes, at: target.end &+ 1)
    }

    /// Reads any method and the space after it; nil on success.
    @inline(never)
    private mutating func readMethod(_ bytes: Span<UInt8>, at start: Int) -> LineOutcome? {
        var index = start
        while index < bytes.count, Token.isMember(bytes[index]), index &- start <= RequestHead.maximumMethodBytes {
            index &+= 1
        }
        guard index < bytes.count else { return .incomplete }
        methodText = ByteRange(from: start, to: index)
        guard bytes[index] == 0x20, !methodText.isEmpty, methodText.count <= RequestHead.maximumMethodBytes else {
            return .failure(bytes[index] == 0x0A ? .bareLF : .badRequestLine)
        }
        method = Method.named(bytes, methodText)
        if method == .other, MethodRegistry.hasInOtherCase(bytes.extracting(methodText.bounds)) {
            return .failure(.methodCase)
        }
        return nil
    }

    /// Finds the end of the target and its query; nil on success.
    private mutating func readTarget(_ bytes: Span<UInt8>, at start: Int, maximumTargetBytes: Int) -> LineOutcome? {
        var index = start
        var question = -1
        while true {
            index = bytes.endOfTargetPart(from: index)
            if index &- start > maximumTargetBytes { return .failure(.uriTooLong) }
            guard index < bytes.count else { return .incomplete }
            let byte = bytes[index]
            if byte == 0x20 { break }
            if byte == UInt8(ascii: "#") { return .failure(.pathAmbiguous) }
            guard byte == UInt8(ascii: "?") else { return .failure(byte == 0x0A ? .bareLF : .badRequestLine) }
            if question < 0 { question = index }
            index &+= 1
        }
        guard index > start else { return .failure(.badRequestLine) }
        target = ByteRange(from: start, to: index)
        query = question < 0 ? .empty : ByteRange(from: question, to: index)
        return nil
    }

    /// Determines which of the four forms the target has (RFC 9112 §3.2).
    private mutating func splitTarget(_ bytes: Span<UInt8>) -> HeadError? {
        let end = query.isEmpty ? target.end : query.start
        if method == .connect {
            guard query.isEmpty, HostValue.isValid(bytes, target, requiresPort: true) else { return .badRequestLine }
            isAuthorityForm = true
            return nil
        }
        if bytes[target.start] == UInt8(ascii: "/") {
            path = ByteRange(from: target.start, to: end)
            return nil
        }
        if bytes[target.start] == UInt8(ascii: "*") {
            guard target.count == 1, method == .options else { return .badRequestLine }
            path = target
            isAsteriskForm = true
            return nil
        }
        return splitAbsoluteTarget(bytes, end: end)
    }

    @inline(never)
    private mutating func splitAbsoluteTarget(_ bytes: Span<UInt8>, end: Int) -> HeadError? {
        let start: Int
        if target.count >= 7, isScheme("http://", bytes) {
            start = target.start &+ 7
        } else if target.count >= 8, isScheme("https://", bytes) {
            start = target.start &+ 8
        } else {
            return .badRequestLine
        }
        var slash = start
        while slash < end, bytes[slash] != UInt8(ascii: "/") { slash &+= 1 }
        authority = ByteRange(from: start, to: slash)
        guard HostValue.isValid(bytes, authority) else { return .badHost }
        isAbsoluteForm = true
        // An empty path means "/": use the last slash of the scheme's "//".
        path = slash < end ? ByteRange(from: slash, to: end) : ByteRange(start: start &- 1, count: 1)
        return nil
    }

    private func isScheme(_ text: StaticString, _ bytes: Span<UInt8>) -> Bool {
        for offset in 0..<text.utf8CodeUnitCount
        where ASCII.lowered(bytes[target.start &+ offset]) != text.byte(at: offset) { return false }
        return true
    }

    private mutating func readVersion(_ bytes: Span<UInt8>, at start: Int) -> LineOutcome {
        guard start &+ 8 <= bytes.count else {
            // An incomplete line is left to the caller.
            return bytes.lineFeed(from: start) < bytes.count ? .failure(.badRequestLine) : .incomplete
        }
        guard let isOld = HTTPVersion.isHTTP10(bytes, at: start) else {
            return .failure(HTTPVersion.isVersion(bytes, at: start) ? .badVersion : .badRequestLine)
        }
        isHTTP10 = isOld
        return FieldLine.readEnd(bytes, at: start &+ 8, otherwise: .badRequestLine)
    }
}

/// The eight bytes of a version (RFC 9112 §2.3).
enum HTTPVersion {
    /// Whether they are `HTTP/1.0`; nil if they are neither that nor `HTTP/1.1`.
    @inline(__always)
    static func isHTTP10(_ bytes: Span<UInt8>, at start: Int) -> Bool? {
        let word = bytes.word(at: start)
        let current: StaticString = "HTTP/1.1"
        let old: StaticString = "HTTP/1.0"
        if word == current.word(at: 0) { return false }
        return word == old.word(at: 0) ? true : nil
    }

    /// Whether they have the form of a version at all.
    static func isVersion(_ bytes: Span<UInt8>, at start: Int) -> Bool {
        let prefix: StaticString = "HTTP/"
        for offset in 0..<5 where bytes[start &+ offset] != prefix.byte(at: offset) { return false }
        return ASCII.isDigit(bytes[start &+ 5]) && bytes[start &+ 6] == UInt8(ascii: ".")
            && ASCII.isDigit(bytes[start &+ 7])
    }
}
