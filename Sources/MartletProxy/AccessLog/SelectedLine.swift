internal import MartletAuthenticator
internal import MartletConfig
internal import MartletCore
internal import MartletDecisions

/// Everything that an access line with selected fields may have, besides the texts of its request.
struct SelectedLine {
    var milliseconds: Int64 = 0
    var status = 0
    var isCheck = false
    var bytesIn = 0
    var bytesOut = 0
    var microseconds = 0
    var retries = 0
    var isSampled = false
    var protocolVersion: StaticString = "HTTP/1.1"
    /// Empty in clear text.
    var tlsVersion: [UInt8] = []
    var listener: [UInt8] = []
    var names = Names()
    var notes = AccessNotes.Entry()

    /// The texts that are the same for many requests.
    struct Names {
        var route: [UInt8] = []
        var reason: [UInt8] = []
        var member: [UInt8] = []
        var condition: [UInt8] = []
        var provider: [UInt8] = []
        var upstream: [UInt8] = []
    }
}

/// Writes access lines with the fields of a plan.
struct SelectedLineWriter {
    private let plan: AccessPlan
    private let format: AccessFormat
    private let instanceID: [UInt8]

    init(_ plan: AccessPlan, _ format: AccessFormat, instanceID: [UInt8]) {
        self.plan = plan
        self.format = format
        self.instanceID = instanceID
    }

    /// Appends a line.
    ///
    /// - Parameter request: lent `inout`, though it is only read: one that a function borrows is copied for it.
    func write(_ line: SelectedLine, _ request: inout RequestTexts, into out: inout ByteBuffer) {
        if format == .json { out.append("{") }
        var isFirst = true
        for index in plan.fields.indices {
            let count = out.count
            let name = format == .json ? plan.jsonNames[index] : plan.textNames[index]
            // What separates fields is the first byte of each name.
            unsafe name.withUnsafeBufferPointer { name in
                unsafe out.append(UnsafeBufferPointer(rebasing: name[(isFirst ? 1 : 0)...]))
            }
            if append(plan.fields[index], line, &request, to: &out) {
                isFirst = false
            } else {
                out.truncate(to: count)
            }
        }
        out.append(format == .json ? "}\n" : "\n")
    }

    /// Appends the value of a field.
    /// - Returns: `false` where the line does not have it.
    private func append(
        _ field: AccessField, _ line: SelectedLine, _ request: inout RequestTexts, to out: inout ByteBuffer
    ) -> Bool {
        switch field {
        case .time: out.append(decimal: Int(line.milliseconds / 1000))
        case .timeMilliseconds: out.append(decimal: Int(line.milliseconds))
        case .timestamp: quote(Array(InternetTime.text(milliseconds: line.milliseconds).utf8), to: &out)
        case .event: quote("request", to: &out)
        case .level: quote("info", to: &out)
        case .instanceID: return quoteUnlessEmpty(instanceID, to: &out)
        case .route: quote(line.names.route, to: &out)
        case .status: out.append(decimal: line.status)
        case .reason: quote(line.names.reason, to: &out)
        case .member: return quoteUnlessEmpty(line.names.member, to: &out)
        case .condition: return quoteUnlessEmpty(line.names.condition, mayHaveSpaces: true, to: &out)
        case .provider: quote(line.names.provider, to: &out)
        case .upstream: quote(line.names.upstream, to: &out)
        case .check:
            guard line.isCheck else { return false }
            out.append("true")
        case .bytesIn: out.append(decimal: line.bytesIn)
        case .bytesOut: out.append(decimal: line.bytesOut)
        case .duration: out.append(decimal: line.microseconds)
        case .protocolVersion: quote(line.protocolVersion, to: &out)
        case .listener: quote(line.listener, to: &out)
        case .tlsVersion: return quoteUnlessEmpty(line.tlsVersion, to: &out)
        case .userAgent: return quoteUnlessEmpty(line.notes.userAgent, mayHaveSpaces: true, to: &out)
        case .referer: return quoteUnlessEmpty(line.notes.referer, to: &out)
        case .upstreamStatus:
            guard line.notes.status > 0 else { return false }
            out.append(decimal: line.notes.status)
        case .upstreamTime:
            guard line.notes.status > 0 else { return false }
            out.append(decimal: line.notes.microseconds)
        case .retries: out.append(decimal: line.retries)
        case .weight: line.isSampled ? out.append(plan.weight) : out.append("1")
        case .requestID, .client, .method, .host, .path, .subject, .sessionID, .traceID:
            return appendText(field, &request, to: &out)
        }
        return true
    }

    /// Appends a text of the request.
    private func appendText(
        _ field: AccessField, _ request: inout RequestTexts, to out: inout ByteBuffer
    ) -> Bool {
        switch field {
        case .requestID: unsafe quote(request.requestID, to: &out)
        case .client: unsafe quote(request.client, to: &out)
        case .method: unsafe quote(request.method, to: &out)
        case .host: unsafe quote(request.host, to: &out)
        case .path:
            let text = unsafe ByteBuffer().appending(escaped: request.path)
            unsafe quote(text.bytes, to: &out)
        case .traceID:
            guard let trace = unsafe request.trace else { return false }
            unsafe quote(trace, to: &out)
        default:
            guard let names = unsafe CallerNames.parts(of: request.caller) else { return false }
            let range = field == .subject ? names.subject : names.session
            unsafe quote(UnsafeBufferPointer(rebasing: request.caller[range]), to: &out)
        }
        return true
    }

    // MARK: Texts, which are escaped already

    private func quoteUnlessEmpty(_ text: [UInt8], mayHaveSpaces: Bool = false, to out: inout ByteBuffer) -> Bool {
        guard !text.isEmpty else { return false }
        quote(text, mayHaveSpaces: mayHaveSpaces, to: &out)
        return true
    }

    private func quote(_ text: StaticString, to out: inout ByteBuffer) {
        if format == .json { out.append("\"") }
        out.append(text)
        if format == .json { out.append("\"") }
    }

    private func quote(_ text: [UInt8], mayHaveSpaces: Bool = false, to out: inout ByteBuffer) {
        unsafe text.withUnsafeBufferPointer { unsafe quote($0, mayHaveSpaces: mayHaveSpaces, to: &out) }
    }

    /// Appends a text in quotation marks, as JSON has it; without them as text, unless it may have spaces.
    private func quote(_ text: UnsafeBufferPointer<UInt8>, mayHaveSpaces: Bool = false, to out: inout ByteBuffer) {
        let isQuoted = format == .json || mayHaveSpaces
        if isQuoted { out.append("\"") }
        unsafe out.append(text)
        if isQuoted { out.append("\"") }
    }
}
