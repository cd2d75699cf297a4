import Testing

@testable import MartletHTTP

/// What depends on the order of the cases.
@Suite struct KnownFieldTests {
    @Test func `exactly these fields are dropped from responses`() {
        #expect(
            Set(KnownField.allCases.filter(\.isDroppedFromResponses)) == [
                .connection, .keepAlive, .proxyConnection, .transferEncoding, .te, .upgrade, .xRequestID,
            ])
    }

    @Test func `exactly these fields are checked`() {
        let framing: Set<KnownField> = [.connection, .contentLength, .transferEncoding, .te, .upgrade]
        #expect(
            Set(KnownField.allCases.filter(\.isCheckedInResponses))
                == framing.union([.keepAlive, .proxyConnection, .xRequestID]))
        #expect(
            Set(KnownField.allCases.filter(\.isCheckedInRequests))
                == framing.union([.host, .trailer, .expect, .authorization]))
    }
}
