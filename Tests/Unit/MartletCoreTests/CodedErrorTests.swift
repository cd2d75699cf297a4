import MartletCore
import Testing

@Suite struct `A coded error` {
    private struct PlainError: CodedError {
        let code: ErrorCode = "test.failed"
        let message = "the test failed"
    }

    private struct OwnTextError: CodedError {
        let code: ErrorCode = "test.failed"
        let message = "the test failed"
        var description: String { "own text" }
    }

    @Test func `is described by its message and code`() {
        #expect("\(PlainError())" == "the test failed [test.failed]")
    }

    @Test func `keeps a description of its own`() {
        let error: any CodedError = OwnTextError()
        #expect("\(error)" == "own text")
    }

    @Test func `is described the same when its type is erased`() {
        let error: any Error = PlainError()
        #expect("\(error)" == "the test failed [test.failed]")
    }
}
