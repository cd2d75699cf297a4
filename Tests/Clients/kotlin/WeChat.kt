// The part of WeChat's SDK that the guide uses.
package com.tencent.mm.opensdk.modelbase

open class BaseReq

open class BaseResp {
    object ErrCode {
        const val ERR_OK = 0
    }

    @JvmField var errCode = 0
}
