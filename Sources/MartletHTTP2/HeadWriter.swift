package import MartletCore
package import MartletHTTP

/// How a header block is to be taken.
package enum HeadVerdict: Equatable, Sendable {
    case good
    /// RFC 9113 §8.1.1: the stream is reset.
    case malformed
    /// No text of it; it can be answered.
    case refused(HeadFailure)
}

/// Writes validated header blocks as HTTP/1 text, one after the other into one buffer.
///
/// Nothing is written that HTTP/1 could read in another way: every name, every value and every part of the first line is
/// judged before it is appended, whatever nghttp2 has judged before.
package struct HeadWriter: ~Copyable {
    /// What a block is.
    package enum Kind: Sendable { case request, response, trailers }

    let headerBytes: Int
    let headerFields: Int
    let maximumTargetBytes: Int
    /// The finished texts that wait to be taken, and the one that is being written.
    package internal(set) var text = ByteBuffer()
    /// A block is being read; its text is not finished.
    var isOpen = false
    /// Where the one that is being written begins.
    private(set) var start = 0
    private(set) var kind = Kind.request
    private(set) var verdict = HeadVerdict.good
    /// Bytes of names and values since the block began, written or not.
    private(set) var decoded = 0
    private var fields = 0
    /// The message ends with its head.
    private(set) var ends = false
    var isPastPseudo = false
    var hasLength = false
    var hasHost = false
    /// A content type of gRPC has come, before or after what made the head unusable.
    private(set) var isGRPC = false
    var request = RequestPseudo()
    /// The cookie crumbs so far, joined (RFC 9113 §8.2.3).
    private var cookie = ByteBuffer()
    var status = 0
    /// The answer is to a HEAD or CONNECT request: no body, whatever its fields say.
    var hasNoBody = false

    package init(headerBytes: Int, headerFields: Int, maximumTargetBytes: Int) {
        self.headerBytes = headerBytes
        self.headerFields = headerFields
        self.maximumTargetBytes = maximumTargetBytes
    }

    /// Begins another text.
    package mutating func begin(_ kind: Kind, ends: Bool, hasNoBody: Bool = false) {
        start = text.count
        self.kind = kind
        self.ends = ends
        self.hasNoBody = hasNoBody
        verdict = .good
        decoded = 0
        fields = 0
        isPastPseudo = kind == .trailers
        hasLength = false
        hasHost = false
        isGRPC = false
        request.clear()
        cookie.removeAll()
        status = 0
    }

    /// Takes one field or pseudo-header field.
    package mutating func add(_ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>) {
        decoded &+= name.count &+ value.count
        if unsafe kind == .request && name.spells("content-type") { isGRPC = unsafe GRPCContentType.matches(value) }
        if verdict != .good { return }
        if unsafe name.first == UInt8(ascii: ":") {
            guard !isPastPseudo else { return fail(.malformed) }
            switch kind {
            case .request: unsafe addRequestPseudo(name, value)
            case .response: unsafe addResponsePseudo(name, value)
            case .trailers: fail(.malformed)
            }
            return
        }
        if !isPastPseudo { finishPseudo() }
        if verdict != .good { return }
        guard unsafe FieldRules.isName(name), unsafe FieldRules.isValue(value),
            unsafe !FieldRules.isAboutConnection(name)
        else { return fail(.malformed) }
        unsafe addField(name, value)
    }

    /// Ends the text; with `good` it stands from `start` to the end of `text`, otherwise nothing of it is left.
    package mutating func finish() -> HeadVerdict {
        if verdict == .good, !isPastPseudo { finishPseudo() }
        if verdict == .good, kind == .request, !hasHost { fail(.refused(.hostMissing)) }
        if verdict == .good, !cookie.isEmpty {
            // The crumbs were counted when they came.
            text.append("cookie: ")
            unsafe text.append(cookie.bytes)
            text.append("\r\n")
        }
        if verdict == .good, kind != .trailers {
            if needsFraming { write("Transfer-Encoding: chunked\r\n") }
            text.append("\r\n")
        }
        if verdict == .good, text.count &- start > headerBytes { fail(.refused(failure(.headTooLarge))) }
        if verdict != .good { discard() }
        return verdict
    }

    /// Drops what was written of the text.
    mutating func discard() { text.truncate(to: start) }

    /// The first `count` bytes of the buffer were taken.
    mutating func drop(_ count: Int) {
        text.consume(count)
        start = max(start &- count, 0)
    }

    mutating func fail(_ verdict: HeadVerdict) {
        self.verdict = verdict
        discard()
    }

    /// The failure, on the side that is to blame.
    func failure(_ failure: HeadFailure) -> HeadFailure { kind == .response ? failure.upstream : failure }

    /// A body of unknown length follows: HTTP/1 knows it by its transfer coding.
    private var needsFraming: Bool {
        if ends || hasLength || hasNoBody || request.isTunnel { return false }
        return kind == .request || !(status < 200 || status == 204 || status == 304)
    }

    private mutating func finishPseudo() {
        isPastPseudo = true
        switch kind {
        case .request: writeRequestLine()
        case .response: writeStatusLine()
        case .trailers: break
        }
    }

    private mutating func addField(_ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>) {
        switch name.count {
        case 2 where unsafe name.spells("te"):
            guard unsafe value.spells(ignoringCase: "trailers") else { return fail(.malformed) }
        case 4 where unsafe kind == .request && name.spells("host"): return unsafe addHost(value)
        case 6 where unsafe kind == .request && name.spells("cookie"): return unsafe addCookie(value)
        case 14 where unsafe kind != .trailers && name.spells("content-length"): return unsafe addLength(value)
        case 17 where unsafe isOwnKey(name, "sec-websocket-key"): return
        case 20 where unsafe isOwnKey(name, "sec-websocket-accept"): return
        default: break
        }
        guard countField(name.count &+ value.count &+ 4) else { return }
        unsafe text.append(name)
        text.append(": ")
        unsafe text.append(value)
        text.append("\r\n")
    }

    /// A field of a WebSocket handshake that we make anew (RFC 8441 §5).
    private func isOwnKey(_ name: UnsafeBufferPointer<UInt8>, _ text: StaticString) -> Bool {
        guard request.isWebSocket else { return false }
        return unsafe name.spells(text)
    }

    private mutating func addCookie(_ value: UnsafeBufferPointer<UInt8>) {
        if cookie.isEmpty {
            guard countField(value.count &+ 10) else { return }
        } else {
            guard countBytes(value.count &+ 2) else { return }
            cookie.append("; ")
        }
        unsafe cookie.append(value)
    }

    /// RFC 9110 §8.6; nghttp2 holds the body against it.
    private mutating func addLength(_ value: UnsafeBufferPointer<UInt8>) {
        guard !hasLength, !value.isEmpty else { return fail(.malformed) }
        for index in 0..<value.count where unsafe value[index] &- 0x30 > 9 { return fail(.malformed) }
        hasLength = true
        guard !request.isTunnel else { return fail(.refused(.badContentLength)) }
        guard countField(value.count &+ 18) else { return }
        text.append("Content-Length: ")
        unsafe text.append(value)
        text.append("\r\n")
    }

    /// Appends a line of ours.
    mutating func write(_ line: StaticString) {
        guard countField(line.utf8CodeUnitCount) else { return }
        text.append(line)
    }

    /// Whether there is room for another field of so many bytes; if not the head is refused.
    mutating func countField(_ bytes: Int) -> Bool {
        fields &+= 1
        guard fields <= headerFields else {
            fail(.refused(failure(.tooManyFields)))
            return false
        }
        return countBytes(bytes)
    }

    func isRoom(for bytes: Int) -> Bool {
        text.count &- start &+ cookie.count &+ bytes <= headerBytes
    }

    private mutating func countBytes(_ bytes: Int) -> Bool {
        if isRoom(for: bytes) { return true }
        fail(.refused(failure(.headTooLarge)))
        return false
    }
}
