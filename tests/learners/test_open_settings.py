from catboost import CatBoostClassifier
from lightgbm import LGBMClassifier
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from xgboost import XGBClassifier

from cosilo.learners.open_settings import open_seeds, quiet_settings


def test_seeds_that_were_left_open_anywhere_inside():
    pipeline = make_pipeline(StandardScaler(), RandomForestClassifier())
    assert open_seeds(pipeline) == ["randomforestclassifier__random_state"]
    assert open_seeds(RandomForestClassifier(random_state=0)) == []
    assert open_seeds(object()) == []
    assert open_seeds(CatBoostClassifier()) == ["random_seed"]
    assert open_seeds(CatBoostClassifier(random_state=3)) == []
    voting = VotingClassifier([("a", CatBoostClassifier()), ("b", XGBClassifier(random_state=1))])
    assert open_seeds(voting) == ["a__random_seed"]


def test_threads_noise_and_files_that_were_left_open():
    assert quiet_settings(RandomForestClassifier()) == {}
    assert quiet_settings(LGBMClassifier()) == {"n_jobs": 1, "verbosity": -1}
    assert quiet_settings(LGBMClassifier(num_threads=2, verbose=1)) == {}
    assert quiet_settings(make_pipeline(XGBClassifier())) == {"xgbclassifier__n_jobs": 1}
    assert quiet_settings(CatBoostClassifier(verbose=100)) == {
        "thread_count": 1,
        "allow_writing_files": False,
    }
