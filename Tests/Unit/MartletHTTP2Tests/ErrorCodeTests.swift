import MartletCore
import MartletHTTP2
import Testing

@Suite struct HTTP2ErrorCodeTests {
    @Test func `codes begin with the room's name`() { #expect("\(ErrorCode.http2SetUpFailed)".hasPrefix("http2.")) }
}
