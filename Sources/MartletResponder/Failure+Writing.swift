package import MartletCore
internal import MartletHTTP

/// Error responses as they are sent.
extension Failure {
    /// Writes a whole response to which nothing is added, as to a connection without a request.
    package func write(
        into out: inout ByteBuffer, requestID: UnsafeBufferPointer<UInt8>, date: borrowing ByteBuffer, close: Bool,
        offersBasic: Bool = false, strictTransportSeconds: Int64 = 0
    ) {
        var body = ByteBuffer()
        unsafe write(nil, to: &body, requestID: requestID)
        unsafe writeHead(
            into: &out, bodyBytes: body.count, requestID: requestID, date: date, close: close,
            offersBasic: offersBasic, strictTransportSeconds: strictTransportSeconds)
        unsafe out.append(body.bytes)
    }

    /// Writes its body: problem+json (RFC 9457), or a page.
    package func write(_ page: ErrorPage?, to body: inout ByteBuffer, requestID: UnsafeBufferPointer<UInt8>) {
        if let page { body.append(page.body) } else { unsafe writeDocument(into: &body, requestID) }
    }

    /// Writes the head of the response.
    package func writeHead(
        into out: inout ByteBuffer, bodyBytes: Int, requestID: UnsafeBufferPointer<UInt8>,
        date: borrowing ByteBuffer, close: Bool, offersBasic: Bool, strictTransportSeconds: Int64 = 0,
        page: ErrorPage? = nil
    ) {
        out.append("HTTP/1.1 ")
        out.append(decimal: status)
        out.append(" ")
        out.append(HTTPStatus.reason(status))
        if let page {
            for field in page.fields {
                out.append("\r\n")
                out.append(text: field.name)
                out.append(": ")
                out.append(text: field.value)
            }
        } else {
            out.append("\r\nContent-Type: application/problem+json\r\nCache-Control: no-store")
        }
        out.append("\r\nContent-Length: ")
        out.append(decimal: bodyBytes)
        out.append("\r\nDate: ")
        unsafe out.append(date.bytes)
        out.append("\r\nX-Request-Id: ")
        unsafe out.append(requestID)
        if challenge != .none {
            out.append("\r\nWWW-Authenticate: ")
            _ = writeChallenge(into: &out)
            // RFC 7617 §2: browsers and tools that only support Basic need its challenge.
            if offersBasic, status == 401 {
                out.append("\r\nWWW-Authenticate: ")
                out.append(Failure.basicChallenge)
            }
        }
        writeRareFields(into: &out, close: close, strictTransportSeconds)
        out.append("\r\n\r\n")
    }

    private func writeDocument(into body: inout ByteBuffer, _ requestID: UnsafeBufferPointer<UInt8>) {
        body.append("{\"type\":\"urn:martlet:problem:")
        body.append(code)
        body.append("\",\"title\":\"")
        body.append(HTTPStatus.reason(status))
        body.append("\",\"status\":")
        body.append(decimal: status)
        body.append(",\"code\":\"")
        body.append(code)
        body.append("\"")
        if !bodyErrors.isEmpty { writeErrors(into: &body) }
        if case .stepUp(let requirement) = challenge { requirement.writeMembers(into: &body) }
        body.append(",\"request_id\":\"")
        unsafe body.append(requestID)
        body.append("\"}\n")
    }

    /// Writes the fields that few responses have.
    func writeRareFields(into out: inout ByteBuffer, close: Bool, _ strictTransportSeconds: Int64) {
        if retryAfter > 0 {
            out.append("\r\nRetry-After: ")
            out.append(decimal: retryAfter)
        }
        if let allow {
            out.append("\r\nAllow: ")
            out.append(text: allow)
        }
        for cookie in setCookies {
            out.append("\r\nSet-Cookie: ")
            out.append(text: cookie)
        }
        if let location {
            out.append("\r\nLocation: ")
            out.append(text: location)
        }
        if variesByOrigin { out.append("\r\nVary: Origin") }
        if let readableBy {
            out.append("\r\nAccess-Control-Allow-Origin: ")
            out.append(text: readableBy)
            out.append("\r\nAccess-Control-Expose-Headers: ")
            out.append(Failure.exposedFields)
        }
        if strictTransportSeconds > 0 {
            out.append("\r\nStrict-Transport-Security: max-age=")
            out.append(decimal: Int(strictTransportSeconds))
        }
        writeConnection(into: &out, close: close)
    }

    private func writeConnection(into out: inout ByteBuffer, close: Bool) {
        if offersWebSocket { out.append("\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13") }
        if close || offersWebSocket {
            out.append("\r\nConnection: ")
            out.append(close ? (offersWebSocket ? "close, Upgrade" : "close") : "Upgrade")
        }
    }
}
