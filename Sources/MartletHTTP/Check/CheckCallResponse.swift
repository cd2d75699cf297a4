internal import MartletCore

/// The response to a check by gRPC: a `CheckResponse` of Envoy, made from the response to the same check over HTTP.
package struct CheckCallResponse {
    /// How a field of the response over HTTP is used.
    package enum Use: Sendable {
        /// It replaces the one of the request to the API, or deletes it where it has no value.
        case request
        /// The client gets it.
        case client
        case none
    }

    private let status: Int
    private var headers: [[UInt8]] = []
    private var removals: [[UInt8]] = []
    private var responseHeaders: [[UInt8]] = []
    private var body: [UInt8] = []

    /// - Parameters:
    ///   - status: of the response over HTTP; 200 lets the request pass.
    ///   - head: of that response, with its status line.
    ///   - use: how a field is used, by its line.
    package init(status: Int, head: Span<UInt8>, body: [UInt8], use: (Span<UInt8>) -> Use) {
        self.status = status
        self.body = body
        var start = 0
        var isFirst = true
        while start < head.count {
            var end = start
            while end < head.count, head[end] != 0x0D { end &+= 1 }
            if !isFirst, end > start { add(head.extracting(start..<end), use(head.extracting(start..<end))) }
            isFirst = false
            start = end &+ 2
        }
    }

    private mutating func add(_ line: Span<UInt8>, _ use: Use) {
        var colon = 0
        while colon < line.count, line[colon] != UInt8(ascii: ":") { colon &+= 1 }
        guard use != .none, colon < line.count else { return }
        var name: [UInt8] = []
        for index in 0..<colon { name.append(ASCII.lowered(line[index])) }
        var value: [UInt8] = []
        var start = colon &+ 1
        while start < line.count, line[start] == 0x20 { start &+= 1 }
        for index in start..<line.count { value.append(line[index]) }
        if use == .client {
            responseHeaders.append(CheckCallResponse.option(name, value, isAdded: true))
        } else if value.isEmpty {
            removals.append(name)
        } else {
            headers.append(CheckCallResponse.option(name, value, isAdded: false))
        }
    }

    /// A `HeaderValueOption`.
    private static func option(_ name: [UInt8], _ value: [UInt8], isAdded: Bool) -> [UInt8] {
        var header = ProtobufWriter()
        header.add(1, name)
        header.add(2, value)
        var option = ProtobufWriter()
        option.add(1, header.bytes)
        // OVERWRITE_IF_EXISTS_OR_ADD; without it a field is added.
        if !isAdded { option.add(3, number: 2) }
        return option.bytes
    }

    /// The message, with the five bytes before it.
    package var framed: [UInt8] {
        var message = ProtobufWriter()
        var code = ProtobufWriter()
        code.add(1, number: UInt64(statusCode))
        message.add(1, code.bytes)
        var response = ProtobufWriter()
        if status == 200 {
            for header in headers { response.add(2, header) }
            for name in removals { response.add(5, name) }
            for header in responseHeaders { response.add(6, header) }
            message.add(3, response.bytes)
        } else {
            var http = ProtobufWriter()
            http.add(1, number: UInt64(clamping: status))
            response.add(1, http.bytes)
            for header in responseHeaders { response.add(2, header) }
            response.add(3, body)
            message.add(2, response.bytes)
        }
        let count = UInt32(clamping: message.bytes.count)
        let prefix = [0] + [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: count >> UInt32($0)) }
        return prefix + message.bytes
    }

    /// The code of `google.rpc.Status`.
    private var statusCode: Int {
        switch status {
        case 200: 0
        case 400: 3  // INVALID_ARGUMENT
        case 401: 16  // UNAUTHENTICATED
        case 429: 8  // RESOURCE_EXHAUSTED
        case 503: 14  // UNAVAILABLE
        default: 7  // PERMISSION_DENIED
        }
    }
}
