internal import MartletAuthenticator
internal import MartletConfig
internal import MartletCore

/// What an access line says of an exchange, besides the texts of its request. The default needs the numbers of each
/// exchange, and those facts that exchanges with one ``AccessKey`` share.
struct AccessFacts: ~Copyable {
    var bytesIn = 0
    var bytesOut = 0
    var microseconds = 0
    // Shared ones; the texts as they stand in a line.
    var instanceID: [UInt8] = []
    var unixTime: Int64 = 0
    var status = 0
    var isCheck = false
    var route: [UInt8] = []
    var reason: [UInt8] = []
    var member: [UInt8] = []
    var condition: [UInt8] = []
    var provider: [UInt8] = []
    var upstream: [UInt8] = []
    // Those of chosen fields.
    var milliseconds: Int64 = 0
    var weight: [UInt8] = []
    var retries = 0
    var protocolVersion: StaticString = "HTTP/1.1"
    var listener: [UInt8] = []
    /// Empty in clear text.
    var tlsVersion = ""
    var notes: AccessNotes?
}

extension ByteBuffer {
    /// Appends all texts of a request whose path has to be escaped, as a JSON line has them behind the name of the first.
    @inline(never)
    consuming func appendingEscaped(_ request: inout RequestTexts) -> ByteBuffer {
        unsafe append(request.beforePath)
        self = unsafe appending(escaped: request.path)
        unsafe append(request.names)
        return self
    }

    /// Appends a client and its request, as a line of text has them by default.
    @inline(never)
    consuming func appendingClient(_ request: inout RequestTexts) -> ByteBuffer {
        unsafe append(request.client)
        append(" ")
        unsafe append(request.method)
        append(" ")
        unsafe append(request.host)
        self = appending(path: &request)
        append(" ")
        return self
    }

    /// Appends the duration and all names, as a line of text has them by default.
    @inline(never)
    consuming func appendingCaller(_ facts: inout AccessFacts, _ request: inout RequestTexts) -> ByteBuffer {
        append(decimal: facts.microseconds)
        append("us id=")
        unsafe append(request.requestID)
        let (caller, trace) = unsafe (request.caller, request.trace)
        if let names = unsafe CallerNames.parts(of: caller) {
            append(" subject=")
            unsafe append(UnsafeBufferPointer(rebasing: caller[names.subject]))
            if !names.session.isEmpty { append(" session_id=") }
            unsafe append(UnsafeBufferPointer(rebasing: caller[names.session]))
        }
        if !trace.isEmpty { append(" trace_id=") }
        unsafe append(trace)
        if !facts.instanceID.isEmpty { append(" instance_id=") }
        append(facts.instanceID)
        append("\n")
        return self
    }

    @inline(__always)
    private consuming func appending(path request: inout RequestTexts) -> ByteBuffer {
        let path = unsafe request.path
        if unsafe PathEscape.isNeeded(by: path) { return unsafe appending(escaped: path) }
        unsafe append(path)
        return self
    }

    /// Appends the value of a field.
    ///
    /// Facts and texts are lent `inout`, though they are only read: what a function borrows is copied for it.
    /// - Returns: whether there is one; where it may be empty, the caller finds out.
    mutating func append(
        _ field: AccessField, _ facts: inout AccessFacts, _ request: inout RequestTexts
    ) -> Bool {
        switch field {
        case .time: append(decimal: Int(facts.unixTime))
        case .timeMilliseconds: append(decimal: Int(facts.milliseconds))
        case .timestamp: append(text: InternetTime.text(milliseconds: facts.milliseconds))
        case .event: append("request")
        case .level: append("info")
        case .instanceID: append(facts.instanceID)
        case .requestID: unsafe append(request.requestID)
        case .client: unsafe append(request.client)
        case .method: unsafe append(request.method)
        case .host: unsafe append(request.host)
        case .path: self = take().appending(path: &request)
        case .subject, .sessionID:
            let caller = unsafe request.caller
            guard let names = unsafe CallerNames.parts(of: caller) else { return false }
            unsafe append(UnsafeBufferPointer(rebasing: caller[field == .subject ? names.subject : names.session]))
        case .traceID: unsafe append(request.trace)
        case .route: append(facts.route)
        case .status: append(decimal: facts.status)
        case .reason: append(facts.reason)
        case .member: append(facts.member)
        case .condition: append(facts.condition)
        case .provider: append(facts.provider)
        case .upstream: append(facts.upstream)
        case .check: if facts.isCheck { append("true") }
        case .bytesIn: append(decimal: facts.bytesIn)
        case .bytesOut: append(decimal: facts.bytesOut)
        case .duration: append(decimal: facts.microseconds)
        case .protocolVersion: append(facts.protocolVersion)
        case .listener: append(facts.listener)
        case .tlsVersion: append(text: facts.tlsVersion)
        case .userAgent: if let notes = facts.notes { append(notes.userAgent) }
        case .referer: if let notes = facts.notes { append(notes.referer) }
        case .upstreamStatus: if let notes = facts.notes, notes.status > 0 { append(decimal: notes.status) }
        case .upstreamTime: if let notes = facts.notes, notes.status > 0 { append(decimal: notes.microseconds) }
        case .retries: append(decimal: facts.retries)
        case .weight: append(facts.weight)
        }
        return true
    }
}
